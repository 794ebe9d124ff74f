//! The resolver over a cluster that answers as told.
#![allow(clippy::unwrap_used)]

#[path = "../../launcher/tests/fake/mod.rs"]
mod fake;

use std::{collections::BTreeMap, time::Duration};

use fake::{Answer, End, Fake, list};
use longshore_resolver::{Error, Resolver};
use serde_json::{Value, json};

fn pod(name: &str, ip: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "9"},
        "status": {"phase": phase, "podIP": ip, "hostIP": "192.168.0.1"},
    })
}

/// A cluster in which each selector finds its pods; watches tell of one more.
fn cluster(pods: Vec<(&'static str, Vec<Value>)>, later: Option<Value>) -> Fake {
    Fake::new(move |asked| {
        assert_eq!(asked.path, "/api/v1/namespaces/default/pods");
        if asked.query.contains("watch=") {
            let event = later
                .iter()
                .map(|pod| format!("{}\n", json!({"type": "ADDED", "object": pod})));
            return Answer::Stream(event.collect(), End::StaysOpen);
        }
        let found = pods
            .iter()
            .find(|(selector, _)| asked.query.contains(selector));
        list(
            "Pod",
            "v1",
            found.map(|(_, pods)| pods.clone()).unwrap_or_default(),
        )
    })
}

fn tensorflow() -> Fake {
    let pods = vec![
        pod("tensorflow-abc123", "10.1.2.3", "Running"),
        pod("tensorflow-def456", "10.1.2.4", "Running"),
        pod("tensorflow-999999", "10.1.2.5", "Running"),
    ];
    cluster(vec![("labelSelector=job-name%3Dtensorflow", pods)], None)
}

#[tokio::test]
async fn the_defaults_are_tensorflows() {
    let resolver = Resolver::new(tensorflow().cluster());
    let spec = resolver.cluster_spec().await.unwrap();
    let expected = json!({"worker": ["10.1.2.5:8470", "10.1.2.3:8470", "10.1.2.4:8470"]});
    assert_eq!(spec.as_dict(), expected);
    assert_eq!(resolver.environment(), "");
    assert_eq!(resolver.rpc_layer(), "grpc");
}

#[tokio::test]
async fn a_master_is_the_address_of_a_task() {
    let resolver = Resolver::new(tensorflow().cluster());
    let master = async |kind, id, layer| resolver.master(kind, id, layer).await.unwrap();
    assert_eq!(
        master(Some("worker"), Some(2), None).await,
        "grpc://10.1.2.4:8470"
    );
    assert_eq!(
        master(Some("worker"), Some(0), Some("")).await,
        "10.1.2.5:8470"
    );
    assert_eq!(master(Some("worker"), None, None).await, "");
    assert_eq!(master(None, Some(0), None).await, "");
    let own = resolver
        .clone()
        .with_task(Some("worker"), Some(1))
        .with_rpc_layer("http");
    assert_eq!(
        own.master(None, None, None).await.unwrap(),
        "http://10.1.2.3:8470"
    );
    assert_eq!(
        own.master(None, Some(0), None).await.unwrap(),
        "http://10.1.2.5:8470"
    );
    let error = resolver
        .master(Some("worker"), Some(3), None)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "No task with index 3 in job 'worker'");
}

#[tokio::test]
async fn roles_and_selectors_keep_their_order() {
    let fake = cluster(
        vec![
            ("job-name%3Dworker1", vec![pod("z", "10.0.0.1", "Running")]),
            ("job-name%3Dworker2", vec![pod("a", "10.0.0.2", "Running")]),
        ],
        None,
    );
    let selectors = ["job-name=worker1", "job-name=worker2"].map(|text| text.parse().unwrap());
    let resolver = Resolver::new(fake.cluster()).with_mapping([("worker", selectors.to_vec())]);
    let spec = resolver.cluster_spec().await.unwrap();
    assert_eq!(
        spec.as_dict(),
        json!({"worker": ["10.0.0.1:8470", "10.0.0.2:8470"]})
    );
}

#[tokio::test]
async fn a_wait_ends_when_the_last_pod_runs() {
    let pods = vec![pod("w-0", "10.0.0.1", "Running"), pod("w-1", "", "Pending")];
    let fake = cluster(
        vec![("tensorflow", pods)],
        Some(pod("w-1", "10.0.0.2", "Running")),
    );
    let needed = BTreeMap::from([("worker".to_owned(), 2)]);
    let spec = Resolver::new(fake.cluster())
        .wait(&needed, Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(
        spec.as_dict(),
        json!({"worker": ["10.0.0.1:8470", "10.0.0.2:8470"]})
    );
}

#[tokio::test]
async fn a_wait_in_vain_lists_who_is_missing() {
    let pods = vec![pod("w-0", "10.0.0.1", "Running"), pod("w-1", "", "Pending")];
    let fake = cluster(vec![("tensorflow", pods)], None);
    let needed = BTreeMap::from([("worker".to_owned(), 3)]);
    let error = Resolver::new(fake.cluster())
        .wait(&needed, Duration::ZERO)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Missing { .. }));
    assert_eq!(
        error.to_string(),
        "not all tasks were ready within 0 s: worker: 1 of 3; w-1 is Pending, 1 not created yet"
    );
}
