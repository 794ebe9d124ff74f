//! Tokens with few permissions.

use longshore_embedded::FaultRule;
use longshore_resolver::{Error, Resolver};
use serde_json::json;

use crate::common::Fixture;

#[tokio::test]
async fn list_permission_is_enough_to_watch() {
    let fixture = Fixture::start().await;
    fixture.pod("w-0", "tensorflow", "10.0.0.1").await;
    let no_watch = FaultRule::answer(403).verbs(["watch"]).resource("pods");
    fixture.embedded.faults().add(no_watch).unwrap();
    let resolver = Resolver::new(fixture.cluster.clone());
    let mut generations = resolver.watch().await.unwrap();
    let first = generations.next().await.unwrap();
    assert_eq!(first.tasks.len(), 1);
    fixture.pod("w-1", "tensorflow", "10.0.0.2").await;
    let second = generations.next().await.unwrap();
    assert_eq!(
        second.spec().as_dict(),
        json!({"worker": ["10.0.0.1:8470", "10.0.0.2:8470"]})
    );
}

#[tokio::test]
async fn the_error_names_the_missing_permission() {
    let fixture = Fixture::start().await;
    let nothing = FaultRule::answer(403).resource("pods");
    fixture.embedded.faults().add(nothing).unwrap();
    let resolver = Resolver::new(fixture.cluster.clone());
    let check = |error: Error| {
        assert!(matches!(error, Error::Forbidden { .. }), "{error:?}");
        error.to_string()
    };
    let error = check(resolver.cluster_spec().await.unwrap_err());
    assert!(
        error.starts_with("permission to list pods in namespace \"default\" is missing: "),
        "{error}"
    );
    assert!(error.contains("kubectl create role"), "{error}");
    let everywhere = resolver.clone().with_namespace(None);
    let error = check(everywhere.cluster_spec().await.unwrap_err());
    assert!(error.contains("list pods in all namespaces"), "{error}");
    check(resolver.watch().await.map(drop).unwrap_err());
}

#[tokio::test]
async fn accelerators_are_counted_without_reading_nodes() {
    let fixture = Fixture::start().await;
    let pod = json!({
        "metadata": {"name": "w-0", "labels": {"job-name": "tensorflow"}},
        "spec": {"nodeName": "one", "containers": [
            {"name": "main", "image": "any", "resources": {"limits": {"google.com/tpu": "4"}}},
        ]},
    });
    fixture.pods.create(&pod).await.unwrap();
    fixture.runs("w-0", "10.0.0.1").await;
    let no_nodes = FaultRule::answer(403).resource("nodes");
    fixture.embedded.faults().add(no_nodes).unwrap();
    let resolver = Resolver::new(fixture.cluster.clone());
    let accelerators = resolver.accelerators().await.unwrap();
    assert_eq!(accelerators[0].resources["google.com/tpu"], 4);
    assert_eq!(accelerators[0].model, None);
    let number = resolver.num_accelerators(None, None).await.unwrap();
    assert_eq!(number["TPU"], 4);
}
