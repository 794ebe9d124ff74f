//! kubectl logs.

use std::time::Duration;

use super::{POD, with_each_kubectl};

#[tokio::test(flavor = "multi_thread")]
async fn logs_in_all_forms() {
    with_each_kubectl(POD, async |stage| {
        stage.ready("pod/box").await;
        // Both streams are there, in the order in which they were read.
        let all = "line 1\nline 2\nline 3\nbad\n";
        let sorted = |text: String| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines.join("\n")
        };
        for _ in 0..100 {
            if stage.sh("kubectl logs box -c main").await.len() >= all.len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let logged = sorted(stage.sh("kubectl logs box main").await);
        stage.same(&logged, "bad\nline 1\nline 2\nline 3");
        let tail = stage.sh("kubectl logs box -c main --tail=2 | wc -l").await;
        stage.same(tail.trim(), "2");
        let bytes = stage.sh("kubectl logs box -c main --limit-bytes=5").await;
        assert_eq!(bytes.len(), 5);
        let none = stage
            .sh("kubectl logs box -c main --since-time=2100-01-01T00:00:00Z")
            .await;
        stage.same(&none, "");
        let recent = stage
            .sh("kubectl logs box -c main --since=1h --timestamps | head -n 1")
            .await;
        let (time, _) = recent.split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{recent}");
        let previous = stage
            .kubectl
            .run(&["logs", "box", "-c", "main", "-p"])
            .await;
        assert!(
            previous.stderr.contains("previous terminated container"),
            "{previous:?}"
        );
        let several = stage
            .sh("kubectl logs -l app=box --all-containers --tail=1 --prefix")
            .await;
        assert!(several.starts_with("[pod/box/main] "), "{several}");
        let wrong = stage.kubectl.run(&["logs", "box", "-c", "none"]).await;
        assert!(
            wrong
                .stderr
                .contains("container none is not valid for pod box"),
            "{wrong:?}"
        );
    })
    .await;
}
