//! The cluster settles: tests assert after an advance, without waiting for an object.

use std::time::{Duration, Instant};

use longshore_client::Error;
use longshore_embedded::{Clock, ClockError, EmbeddedCluster, Options, SettleError};
use serde_json::{Value, json};

use crate::common::{START, TIMEOUT, advance, events, seconds, spec, start};

const SETTLE: &str = "/longshore.dev/v1/clock/settle";

async fn settle(embedded: &EmbeddedCluster) {
    embedded.clock().settle(TIMEOUT).await.unwrap();
}

fn cron(name: &str) -> Value {
    let mut pod = spec("true");
    pod["restartPolicy"] = "Never".into();
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": {
        "schedule": "* * * * *",
        "jobTemplate": {"spec": {"ttlSecondsAfterFinished": 30, "template": {"spec": pod}}}}})
}

/// Each advance starts a Job per CronJob, a pod per Job, an Event of both controllers, and
/// the scheduler's decision on the pod.
#[tokio::test(flavor = "multi_thread")]
async fn all_controllers_have_acted() {
    let embedded = start(false).await;
    let cluster = embedded.cluster();
    for name in ["a", "b", "c"] {
        let cron = cron(name);
        cluster.create(&cron, Some("default")).await.unwrap();
    }
    settle(&embedded).await;
    for round in 1..=20_usize {
        advance(&embedded, seconds(60)).await;
        settle(&embedded).await;
        let jobs = cluster.jobs().list().await.unwrap().items;
        assert_eq!(jobs.len(), 3 * round);
        let pods = cluster.pods().list().await.unwrap().items;
        assert_eq!(pods.len(), 3 * round);
        for pod in &pods {
            let conditions: Option<Value> = pod.field(&["status", "conditions"]).unwrap();
            assert_eq!(
                conditions.unwrap_or_default()[0]["reason"],
                "Unschedulable",
                "{}",
                pod.name()
            );
        }
        let started = events(&cluster, "a", "SuccessfulCreate").await;
        let started = started.iter().filter_map(|event| event["count"].as_u64());
        assert!(started.count() > 0);
    }
    embedded.stop().await;
}

/// The controllers start concurrently with the cluster. A cluster has not settled before they have
/// acted on objects that were created before.
#[tokio::test(flavor = "multi_thread")]
async fn controllers_that_start_are_awaited() {
    for _ in 0..20 {
        let embedded = start(false).await;
        let cluster = embedded.cluster();
        let cron = cron("a");
        cluster.create(&cron, Some("default")).await.unwrap();
        advance(&embedded, seconds(60)).await;
        settle(&embedded).await;
        let pods = cluster.pods().list().await.unwrap().items;
        assert_eq!(pods.len(), 1);
        embedded.stop().await;
    }
}

/// The garbage collector, namespaces and timers of taints follow each other.
#[tokio::test(flavor = "multi_thread")]
async fn chains_of_controllers_are_awaited() {
    let embedded = start(false).await;
    let cluster = embedded.cluster();
    let node = json!({"metadata": {"name": "n"}});
    cluster.nodes().create(&node).await.unwrap();
    let deployment = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec("sleep 1000")}}});
    let deployments = cluster.deployments().in_namespace("default").unwrap();
    deployments.create(&deployment).await.unwrap();
    settle(&embedded).await;
    assert_eq!(cluster.pods().list().await.unwrap().items.len(), 3);
    deployments
        .delete("web", &longshore_client::DeleteOptions::default())
        .await
        .unwrap();
    settle(&embedded).await;
    assert!(cluster.pods().list().await.unwrap().items.is_empty());
    assert!(cluster.replicasets().list().await.unwrap().items.is_empty());
    // The node has not reported: the controller marks it after a minute.
    for _ in 0..15 {
        advance(&embedded, seconds(5)).await;
        settle(&embedded).await;
    }
    let node = cluster.nodes().fetch("n").await.unwrap();
    let taints: Option<Value> = node.field(&["spec", "taints"]).unwrap();
    let taints = taints.unwrap_or_default();
    let keys: Vec<_> = taints
        .as_array()
        .unwrap()
        .iter()
        .map(|taint| &taint["key"])
        .collect();
    assert!(
        keys.contains(&&json!("node.kubernetes.io/unreachable")),
        "{taints}"
    );
    embedded.stop().await;
}

/// A node runs pods while the clock stands still; its heartbeats are awaited.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_a_node_settles() {
    let embedded = start(true).await;
    let cluster = embedded.cluster();
    let pod = json!({"metadata": {"name": "web"}, "spec": spec("sleep 1000")});
    let pods = cluster.pods().in_namespace("default").unwrap();
    pods.create(&pod).await.unwrap();
    settle(&embedded).await;
    let bound: Option<String> = pods
        .fetch("web")
        .await
        .unwrap()
        .field(&["spec", "nodeName"])
        .unwrap();
    assert!(bound.is_some());
    advance(&embedded, seconds(3600)).await;
    settle(&embedded).await;
    let nodes = cluster.nodes().list().await.unwrap().items;
    let taints: Option<Value> = nodes[0].field(&["spec", "taints"]).unwrap();
    assert_eq!(taints, None);
    embedded.stop().await;
}

#[tokio::test]
async fn work_that_does_not_end_is_reported() {
    let embedded = start(false).await;
    let clock = embedded.clock();
    settle(&embedded).await;
    let busy = clock.source().busy("the backup");
    let begin = Instant::now();
    let error = clock.settle(Duration::from_millis(50)).await.unwrap_err();
    assert!(begin.elapsed() >= Duration::from_millis(50));
    assert_eq!(
        error.to_string(),
        "the cluster has not settled within 50ms: the backup is at work; set a longer timeout, \
         or wait for the state of an object"
    );
    drop(busy);
    settle(&embedded).await;
    embedded.stop().await;

    let embedded = EmbeddedCluster::start(Options::server()).await.unwrap();
    let refused = embedded.clock().settle(TIMEOUT).await;
    assert_eq!(refused, Err(SettleError::Clock(ClockError::NotManual)));
    embedded.stop().await;
}

#[tokio::test]
async fn clients_wait_over_http() {
    let options = Options {
        clock: Clock::manual(START.parse().unwrap()),
        faults: true,
        nodes: 0,
        ..Options::default()
    };
    let embedded = EmbeddedCluster::start(options).await.unwrap();
    let cluster = embedded.cluster();
    let proxy = cluster.proxy();
    cluster.create(&cron("a"), Some("default")).await.unwrap();
    let settled = proxy.post(SETTLE, &[], &json!({})).await.unwrap();
    assert_eq!(settled["time"], START);
    advance(&embedded, seconds(60)).await;
    let body = json!({"timeoutSeconds": 60});
    let settled = proxy.post(SETTLE, &[], &body).await.unwrap();
    assert_eq!(settled["time"], "2026-01-01T03:00:00Z");
    assert_eq!(cluster.jobs().list().await.unwrap().items.len(), 1);

    let refused = |refused: Result<Value, Error>| {
        let error = refused.unwrap_err();
        (error.code(), error.status().unwrap().message.clone())
    };
    let _busy = embedded.clock().source().busy("the backup");
    let body = json!({"timeoutSeconds": 0.01});
    let (code, message) = refused(proxy.post(SETTLE, &[], &body).await);
    assert_eq!(code, Some(504));
    assert!(message.contains("the backup is at work"), "{message}");
    for timeout in [json!(-1), json!(1e300), json!("soon")] {
        let body = json!({"timeoutSeconds": timeout});
        assert_eq!(
            refused(proxy.post(SETTLE, &[], &body).await).0,
            Some(400),
            "{timeout}"
        );
    }
    let body = json!({"timeoutSeconds": -1});
    let (_, message) = refused(proxy.post(SETTLE, &[], &body).await);
    assert_eq!(
        message,
        "timeoutSeconds must be a number of seconds, 0 or above, but is -1"
    );
    let (code, message) = refused(proxy.post(SETTLE, &[], &json!({"timeout": 60})).await);
    assert_eq!(code, Some(400));
    assert_eq!(
        message,
        "unknown field `timeout`, expected `timeoutSeconds`"
    );
    embedded.stop().await;
}
