//! Waiting for missing tasks.

use std::{collections::BTreeMap, time::Duration};

use longshore_resolver::{Error, Resolver};
use serde_json::json;

use crate::common::{Fixture, TIMEOUT};

fn needed(number: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([("worker".to_owned(), number)])
}

#[tokio::test]
async fn wait_returns_when_the_last_pod_runs() {
    let fixture = Fixture::start().await;
    fixture.pod("w-0", "tensorflow", "10.0.0.1").await;
    fixture.pod("w-1", "tensorflow", "").await;
    let resolver = Resolver::new(fixture.cluster.clone());
    let (three, three_needed) = (resolver.clone(), needed(3));
    let waiting = tokio::spawn(async move { three.wait(&three_needed, TIMEOUT).await });
    tokio::task::yield_now().await;
    fixture.pod("w-10", "tensorflow", "10.0.0.10").await;
    assert!(!waiting.is_finished());
    fixture.runs("w-1", "10.0.0.2").await;
    let tasks = waiting.await.unwrap().unwrap();
    assert_eq!(
        tasks.spec().as_dict(),
        json!({"worker": ["10.0.0.1:8470", "10.0.0.2:8470", "10.0.0.10:8470"]})
    );
    // There are enough tasks: the call returns without waiting.
    assert_eq!(
        resolver
            .wait(&needed(1), Duration::ZERO)
            .await
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test]
async fn a_timeout_lists_the_missing_tasks() {
    let fixture = Fixture::start().await;
    fixture.pod("w-0", "tensorflow", "10.0.0.1").await;
    fixture.pod("w-1", "tensorflow", "").await;
    let resolver = Resolver::new(fixture.cluster.clone());
    let error = resolver.wait(&needed(3), Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, Error::Missing { .. }));
    assert_eq!(
        error.to_string(),
        "timed out after 0 s waiting for tasks: worker: 1 of 3; w-1 is Pending, 1 not created yet"
    );
}

#[tokio::test]
async fn pods_without_an_address_are_not_tasks() {
    let fixture = Fixture::start().await;
    fixture.pod("w-0", "tensorflow", "10.0.0.1").await;
    fixture.pod("w-1", "tensorflow", "").await;
    fixture.status("w-1", json!({"phase": "Running"})).await;
    let resolver = Resolver::new(fixture.cluster.clone());
    let tasks = resolver.wait(&needed(1), Duration::ZERO).await.unwrap();
    assert_eq!(tasks.len(), 1);
}

#[tokio::test]
async fn closing_the_cluster_ends_the_wait() {
    let fixture = Fixture::start().await;
    let (resolver, one) = (Resolver::new(fixture.cluster.clone()), needed(1));
    let waiting = tokio::spawn(async move { resolver.wait(&one, TIMEOUT).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    fixture.cluster.close();
    let error = waiting.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("closed"), "{error}");
}
