//! kubectl attach.

use std::time::Duration;

use super::{UNDER_A_TERMINAL, with_each_kubectl};

/// Pods whose commands read the standard input by line, until the first session ends, and
/// from a terminal.
const READERS: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: reader
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: any
    stdin: true
    command: [sh, -c, "while read line; do echo got $line; [ $line = end ] && exit 0; done"]
  restartPolicy: Never
---
apiVersion: v1
kind: Pod
metadata:
  name: once
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: any
    stdin: true
    stdinOnce: true
    command: [sh, -c, "cat; echo that was all"]
  restartPolicy: Never
---
apiVersion: v1
kind: Pod
metadata:
  name: screen
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: any
    stdin: true
    tty: true
    command: [sh, -c, "test -t 0 && test -t 1 && echo a terminal; read line; echo got $line; sleep 1000"]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn attach_reads_and_writes_the_containers_own_streams() {
    with_each_kubectl(READERS, async |session| {
        for pod in ["reader", "once", "screen"] {
            session.ready(&format!("pod/{pod}")).await;
        }
        // The standard input stays open between sessions.
        let first = session
            .sh("(echo one; sleep 1) | timeout 3 kubectl attach -i reader -c main; true")
            .await;
        assert!(first.contains("got one"), "{first}");
        let second = session
            .sh("(echo two; sleep 0.5; echo end; sleep 1) | kubectl attach -i reader -c main")
            .await;
        assert!(second.contains("got two\ngot end"), "{second}");
        let once = session
            .sh("echo hello | kubectl attach -i once -c main")
            .await;
        assert!(once.contains("hello\nthat was all"), "{once}");
        let logged = session.sh("kubectl logs once").await;
        session.same(&logged, "hello\nthat was all\n");
        session
            .sh(&format!("cat > under.py <<'EOF'{UNDER_A_TERMINAL}EOF"))
            .await;
        let screen = session
            .kubectl
            .shell("timeout 5 python3 under.py 'hi\\n' kubectl attach -it screen -c main")
            .await;
        drop(screen);
        let mut logged = String::new();
        for _ in 0..100 {
            logged = session.sh("kubectl logs screen").await;
            if logged.contains("got hi") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(
            logged.contains("a terminal") && logged.contains("got hi"),
            "{logged}"
        );
    })
    .await;
}
