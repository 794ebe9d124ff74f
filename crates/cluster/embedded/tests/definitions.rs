//! Deleted CustomResourceDefinitions are seen with their `deletionTimestamp` before they end.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use longshore_client::{Cluster, DeleteOptions};
use longshore_embedded::{Clock, EmbeddedCluster, Options};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than a definition is kept.
const SHORT: Duration = Duration::from_millis(500);
const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAME: &str = "voles.example.org";

/// Creates a definition with an object, and deletes the definition.
async fn delete_definition(cluster: &Cluster) {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": "example.org", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "voles", "singular": "vole", "kind": "Vole"}},
    });
    let definitions = cluster.customresourcedefinitions();
    definitions.create(&definition).await.unwrap();
    let vole = json!({"apiVersion": "example.org/v1", "kind": "Vole", "metadata": {"name": "a"}});
    cluster.create(&vole, Some("default")).await.unwrap();
    let options = DeleteOptions::default();
    definitions.delete(NAME, &options).await.unwrap();
}

async fn is_there(cluster: &Cluster) -> bool {
    let found = cluster.customresourcedefinitions().find(NAME).await;
    found.unwrap().is_some()
}

#[tokio::test]
async fn a_watch_after_the_deletion_sees_the_end() {
    let embedded = longshore_embedded::start_server().await.unwrap();
    let cluster = embedded.cluster();
    let selector = format!("metadata.name={NAME}");
    let query = [
        ("resourceVersion", "0"),
        ("fieldSelector", selector.as_str()),
    ];
    let mut attempts = 0;
    let (mut watch, first) = loop {
        delete_definition(&cluster).await;
        let mut watch = cluster.proxy().watch(PATH, &query).await.unwrap();
        match watch.next(Some(SHORT)).await {
            Ok(first) => break (watch, first.unwrap()),
            // On a machine with much other work, the watch may begin too late.
            Err(_) => attempts += 1,
        }
        assert!(attempts < 20);
    };
    assert_eq!(first["type"], "ADDED");
    let metadata = &first["object"]["metadata"];
    assert!(metadata["deletionTimestamp"].is_string(), "{metadata}");
    loop {
        let event = watch.next(Some(TIMEOUT)).await.unwrap().unwrap();
        if event["type"] == "DELETED" {
            break;
        }
        assert_eq!(event["type"], "MODIFIED", "{event}");
    }
    assert!(!is_there(&cluster).await);
    embedded.stop().await;
}

/// The end of a definition is awaited with a manual clock, and after a return to a snapshot.
#[tokio::test]
async fn a_cluster_settles_when_definitions_have_ended() {
    let options = Options {
        clock: Clock::manual("2026-01-01T00:00:00Z".parse().unwrap()),
        ..Options::server()
    };
    let embedded = EmbeddedCluster::start(options).await.unwrap();
    let cluster = embedded.cluster();
    let before = embedded.snapshot();
    for _ in 0..3 {
        delete_definition(&cluster).await;
        let deleted = embedded.snapshot();
        embedded.clock().settle(TIMEOUT).await.unwrap();
        assert!(!is_there(&cluster).await);
        embedded.restore(&deleted).await.unwrap();
        embedded.clock().settle(TIMEOUT).await.unwrap();
        assert!(!is_there(&cluster).await);
        embedded.restore(&before).await.unwrap();
    }
    embedded.stop().await;
}
