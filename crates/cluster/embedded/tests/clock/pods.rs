//! Pods that run as processes: their times, deadlines, restarts and logs.

use longshore_client::{Item, kinds, until};
use serde_json::json;

use crate::common::{HOUR, TIMEOUT, advance, seconds, spec, start, wait};

fn restarts(pod: &Item<kinds::Pod>) -> u64 {
    let raw = pod.raw().unwrap();
    raw["status"]["containerStatuses"][0]["restartCount"]
        .as_u64()
        .unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_restarts_after_its_backoff() {
    let embedded = start(true).await;
    let pods = embedded.cluster().pods().in_namespace("default").unwrap();
    let pod = json!({"metadata": {"name": "failing"}, "spec": spec("exit 1")});
    pods.create(&pod).await.unwrap();
    let mut known = 0;
    for _ in 0..4 {
        let waits = |pod: &Item<_>| {
            let raw = pod.raw().unwrap();
            let waiting = &raw["status"]["containerStatuses"][0]["state"]["waiting"];
            waiting["reason"] == "CrashLoopBackOff" && restarts(pod) >= known
        };
        let pod = pods.wait("failing", waits, TIMEOUT).await.unwrap();
        known = restarts(&pod) + 1;
        advance(&embedded, seconds(300)).await;
    }
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_fails_at_its_deadline() {
    let embedded = start(true).await;
    let pods = embedded.cluster().pods().in_namespace("default").unwrap();
    let mut spec = spec("sleep 1000");
    spec["activeDeadlineSeconds"] = 3600.into();
    pods.create(&json!({"metadata": {"name": "slow"}, "spec": spec}))
        .await
        .unwrap();
    pods.wait("slow", until::ready, TIMEOUT).await.unwrap();
    advance(&embedded, HOUR).await;
    let failed = |pod: &Item<_>| pod.raw().unwrap()["status"]["phase"] == "Failed";
    let pod = pods.wait("slow", failed, TIMEOUT).await.unwrap();
    let status = &pod.raw().unwrap()["status"];
    assert_eq!(status["reason"], "DeadlineExceeded");
    assert_eq!(status["startTime"], "2026-01-01T02:59:00Z");
    let ended = &status["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["finishedAt"], "2026-01-01T03:59:00Z");
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_since_some_seconds_has_the_lines_of_that_time() {
    let embedded = start(true).await;
    let pods = embedded.cluster().pods().in_namespace("default").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "echo first; until [ -e {} ]; do :; done; echo second",
        go.display()
    );
    let mut spec = spec(&script);
    spec["restartPolicy"] = "Never".into();
    pods.create(&json!({"metadata": {"name": "p"}, "spec": spec}))
        .await
        .unwrap();
    let proxy = embedded.cluster().proxy();
    let log = async |since: Option<&str>| {
        let query: Vec<_> = since
            .map(|since| ("sinceSeconds", since))
            .into_iter()
            .collect();
        let path = "/api/v1/namespaces/default/pods/p/log";
        // The container has not started yet.
        let log = proxy.get_bytes(path, &query).await.unwrap_or_default();
        String::from_utf8(log.to_vec()).unwrap()
    };
    wait(async || log(None).await == "first\n").await;
    advance(&embedded, HOUR).await;
    std::fs::write(&go, "").unwrap();
    wait(async || log(None).await == "first\nsecond\n").await;
    assert_eq!(log(Some("60")).await, "second\n");
    assert_eq!(log(Some("7200")).await, "first\nsecond\n");
    embedded.stop().await;
}
