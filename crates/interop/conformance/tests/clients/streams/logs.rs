//! kubectl logs.

use std::time::Duration;

use super::{POD, with_each_kubectl};

#[tokio::test(flavor = "multi_thread")]
async fn logs_support_all_options() {
    with_each_kubectl(POD, async |session| {
        session.ready("pod/box").await;
        // The log contains both streams in the order in which the node read them.
        let all = "line 1\nline 2\nline 3\nbad\n";
        let sorted = |text: String| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines.join("\n")
        };
        for _ in 0..100 {
            if session.sh("kubectl logs box -c main").await.len() >= all.len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let logged = sorted(session.sh("kubectl logs box main").await);
        session.same(&logged, "bad\nline 1\nline 2\nline 3");
        let tail = session
            .sh("kubectl logs box -c main --tail=2 | wc -l")
            .await;
        session.same(tail.trim(), "2");
        let bytes = session.sh("kubectl logs box -c main --limit-bytes=5").await;
        assert_eq!(bytes.len(), 5);
        let none = session
            .sh("kubectl logs box -c main --since-time=2100-01-01T00:00:00Z")
            .await;
        session.same(&none, "");
        let recent = session
            .sh("kubectl logs box -c main --since=1h --timestamps | head -n 1")
            .await;
        let (time, _) = recent.split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{recent}");
        let previous = session
            .kubectl
            .run(&["logs", "box", "-c", "main", "-p"])
            .await;
        assert!(
            previous.stderr.contains("previous terminated container"),
            "{previous:?}"
        );
        let several = session
            .sh("kubectl logs -l app=box --all-containers --tail=1 --prefix")
            .await;
        assert!(several.starts_with("[pod/box/main] "), "{several}");
        let wrong = session.kubectl.run(&["logs", "box", "-c", "none"]).await;
        assert!(
            wrong
                .stderr
                .contains("container none is not valid for pod box"),
            "{wrong:?}"
        );
    })
    .await;
}
