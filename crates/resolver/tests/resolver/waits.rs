//! Waiting for who is missing.

use std::{collections::BTreeMap, time::Duration};

use longshore_resolver::{Error, Resolver};
use serde_json::json;

use crate::common::{Here, PATIENCE};

fn needed(number: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([("worker".to_owned(), number)])
}

#[tokio::test]
async fn a_wait_ends_when_the_last_pod_runs() {
    let here = Here::start().await;
    here.pod("w-0", "tensorflow", "10.0.0.1").await;
    here.pod("w-1", "tensorflow", "").await;
    let resolver = Resolver::new(here.cluster.clone());
    let (three, three_needed) = (resolver.clone(), needed(3));
    let waiting = tokio::spawn(async move { three.wait(&three_needed, PATIENCE).await });
    tokio::task::yield_now().await;
    here.pod("w-10", "tensorflow", "10.0.0.10").await;
    assert!(!waiting.is_finished());
    here.runs("w-1", "10.0.0.2").await;
    let tasks = waiting.await.unwrap().unwrap();
    assert_eq!(
        tasks.spec().as_dict(),
        json!({"worker": ["10.0.0.1:8470", "10.0.0.2:8470", "10.0.0.10:8470"]})
    );
    // Enough are there: nobody is waited for.
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
async fn a_wait_in_vain_lists_who_is_missing() {
    let here = Here::start().await;
    here.pod("w-0", "tensorflow", "10.0.0.1").await;
    here.pod("w-1", "tensorflow", "").await;
    let resolver = Resolver::new(here.cluster.clone());
    let error = resolver.wait(&needed(3), Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, Error::Missing { .. }));
    assert_eq!(
        error.to_string(),
        "not all tasks were there within 0 s: worker: 1 of 3; w-1 is Pending, 1 not created yet"
    );
}

#[tokio::test]
async fn who_lacks_an_address_is_not_among_them() {
    let here = Here::start().await;
    here.pod("w-0", "tensorflow", "10.0.0.1").await;
    here.pod("w-1", "tensorflow", "").await;
    here.status("w-1", json!({"phase": "Running"})).await;
    let resolver = Resolver::new(here.cluster.clone());
    let tasks = resolver.wait(&needed(1), Duration::ZERO).await.unwrap();
    assert_eq!(tasks.len(), 1);
}

#[tokio::test]
async fn a_cluster_that_closes_ends_the_wait() {
    let here = Here::start().await;
    let (resolver, one) = (Resolver::new(here.cluster.clone()), needed(1));
    let waiting = tokio::spawn(async move { resolver.wait(&one, PATIENCE).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    here.cluster.close();
    let error = waiting.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("closed"), "{error}");
}
