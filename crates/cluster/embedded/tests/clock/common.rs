//! Clusters with a manual clock.

use std::time::Duration;

use longshore_client::Cluster;
use longshore_embedded::{Clock, EmbeddedCluster, Options};
use serde_json::{Value, json};

/// Time that a test waits for the cluster, by the system's clock.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const START: &str = "2026-01-01T02:59:00Z";
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Starts a cluster with a clock that shows [`START`].
pub(crate) async fn start(node: bool) -> EmbeddedCluster {
    let options = Options {
        clock: Clock::manual(START.parse().unwrap()),
        nodes: u8::from(node),
        ..Options::default()
    };
    EmbeddedCluster::start(options).await.unwrap()
}

pub(crate) async fn advance(embedded: &EmbeddedCluster, by: Duration) {
    embedded.clock().advance(by).await.unwrap();
}

/// Advances the clock in steps until `done`. Returns the total duration of the steps.
pub(crate) async fn advance_until(
    embedded: &EmbeddedCluster,
    step: Duration,
    mut done: impl AsyncFnMut() -> bool,
) -> Duration {
    let begin = embedded.clock().now();
    let steps = async {
        while !done().await {
            advance(embedded, step).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, steps).await.unwrap();
    let advanced = embedded.clock().now().duration_since(begin);
    Duration::try_from(advanced).unwrap()
}

/// Waits until `done`.
pub(crate) async fn wait(mut done: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !done().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap();
}

/// The template of pods that run `script`.
pub(crate) fn spec(script: &str) -> Value {
    json!({"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "main", "image": "any", "command": ["sh", "-c", script]}]})
}

/// The events about an object with this reason.
pub(crate) async fn events(cluster: &Cluster, name: &str, reason: &str) -> Vec<Value> {
    let list = cluster.events().list().await.unwrap();
    let events = list.items.iter().map(|item| item.raw().unwrap());
    events
        .filter(|event| event["involvedObject"]["name"] == name && event["reason"] == reason)
        .collect()
}
