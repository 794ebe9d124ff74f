//! Clusters for runnable documentation examples.

use std::{error::Error, time::Duration};

use longshore_client::{Cluster, View, blocking, kinds::Pod, until};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{Options, cluster::EmbeddedCluster};

/// Maximum time for a pod to start, even on a busy machine.
const POD_START_TIMEOUT: Duration = Duration::from_secs(60);

type Outcome = Result<(), Box<dyn Error>>;

/// Runs an example on a separate API server, without controllers or a node that
/// could change its objects.
///
/// # Panics
/// The example fails.
pub fn example(example: impl AsyncFnOnce(Cluster) -> Outcome) {
    run_on(Options::server(), example);
}

/// Runs an example on a cluster that runs pods.
///
/// # Panics
/// The example fails.
pub fn example_with_pods(example: impl AsyncFnOnce(Cluster) -> Outcome) {
    run_on(Options::default(), example);
}

/// Runs an example on a cluster with a running pod `web` whose command is a shell
/// script.
///
/// # Panics
/// The example fails.
pub fn example_in_pod(script: &str, example: impl AsyncFnOnce(View<Pod>) -> Outcome) {
    example_with_pods(async |cluster| {
        let pods = cluster.pods().in_namespace("default")?;
        let container = json!({"name": "main", "image": "any", "command": ["sh", "-c", script]});
        let spec = json!({"containers": [container], "terminationGracePeriodSeconds": 0});
        pods.create(&json!({"metadata": {"name": "web"}, "spec": spec}))
            .await?;
        pods.wait("web", until::ready, POD_START_TIMEOUT).await?;
        example(pods).await
    });
}

/// Runs an example with the blocking client. Otherwise like [`example`].
///
/// # Panics
/// The example fails.
pub fn blocking_example(example: impl FnOnce(blocking::Cluster) -> Outcome) {
    let (runtime, embedded) = start(Options::server());
    let outcome = example(embedded.cluster().into());
    runtime.block_on(embedded.stop());
    assert_success(outcome);
}

fn run_on(options: Options, example: impl AsyncFnOnce(Cluster) -> Outcome) {
    let (runtime, embedded) = start(options);
    let outcome = runtime.block_on(async {
        let outcome = example(embedded.cluster()).await;
        embedded.stop().await;
        outcome
    });
    assert_success(outcome);
}

#[expect(
    clippy::expect_used,
    reason = "an example whose cluster cannot start must fail"
)]
fn start(options: Options) -> (Runtime, EmbeddedCluster) {
    let runtime = Runtime::new().expect("a runtime starts");
    let embedded = runtime.block_on(EmbeddedCluster::start(options));
    (runtime, embedded.expect("the cluster starts"))
}

#[expect(clippy::panic, reason = "a failed example must fail its test")]
fn assert_success(outcome: Outcome) {
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
