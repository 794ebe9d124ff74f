//! Clusters for the examples of documentation, so that each of them runs.

use std::{error::Error, time::Duration};

use longshore_client::{Cluster, View, blocking, kinds::Pod, until};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{Options, cluster::EmbeddedCluster};

/// A pod starts in less, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

type Outcome = Result<(), Box<dyn Error>>;

/// Runs an example on an API server of its own, to which nobody else writes.
///
/// # Panics
/// When the example fails.
pub fn example(example: impl AsyncFnOnce(Cluster) -> Outcome) {
    on(Options::server(), example);
}

/// As [`example`], on a whole cluster: pods run.
///
/// # Panics
/// When the example fails.
pub fn example_with_pods(example: impl AsyncFnOnce(Cluster) -> Outcome) {
    on(Options::default(), example);
}

/// As [`example_with_pods`], with a pod `web` that runs a shell's script.
///
/// # Panics
/// When the example fails.
pub fn example_in_pod(script: &str, example: impl AsyncFnOnce(View<Pod>) -> Outcome) {
    example_with_pods(async |cluster| {
        let pods = cluster.pods().in_namespace("default")?;
        let container = json!({"name": "main", "image": "any", "command": ["sh", "-c", script]});
        let spec = json!({"containers": [container], "terminationGracePeriodSeconds": 0});
        pods.create(&json!({"metadata": {"name": "web"}, "spec": spec}))
            .await?;
        pods.wait("web", until::ready, PATIENCE).await?;
        example(pods).await
    });
}

/// As [`example`], without `async`.
///
/// # Panics
/// When the example fails.
pub fn blocking_example(example: impl FnOnce(blocking::Cluster) -> Outcome) {
    let (runtime, embedded) = start(Options::server());
    let outcome = example(embedded.cluster().into());
    runtime.block_on(embedded.stop());
    succeeded(outcome);
}

fn on(options: Options, example: impl AsyncFnOnce(Cluster) -> Outcome) {
    let (runtime, embedded) = start(options);
    let outcome = runtime.block_on(async {
        let outcome = example(embedded.cluster()).await;
        embedded.stop().await;
        outcome
    });
    succeeded(outcome);
}

#[expect(clippy::expect_used, reason = "an example that cannot run must fail")]
fn start(options: Options) -> (Runtime, EmbeddedCluster) {
    let runtime = Runtime::new().expect("a runtime starts");
    let embedded = runtime.block_on(EmbeddedCluster::start(options));
    (runtime, embedded.expect("the cluster starts"))
}

#[expect(clippy::panic, reason = "an example that fails must be seen")]
fn succeeded(outcome: Outcome) {
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
