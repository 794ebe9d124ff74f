//! The current usage of pods from `metrics.k8s.io`, which clusters with a metrics server have.

use std::time::Duration;

use longshore_client::Cluster;
use longshore_diagnosis::names;
use longshore_model::facts::{Quantities, quantities, quantity};
use serde::Deserialize;

use super::{CurrentUsage, TaskUsage};
use crate::{queries, run::Run};

/// The timeout of the request.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
struct PodMetrics {
    metadata: Name,
    #[serde(default)]
    containers: Vec<ContainerMetrics>,
}

#[derive(Debug, Deserialize)]
struct Name {
    name: String,
}

#[derive(Debug, Deserialize)]
struct ContainerMetrics {
    name: String,
    #[serde(default, deserialize_with = "quantities")]
    usage: Quantities,
}

/// Adds the current usage to tasks that run.
///
/// # Errors
/// The reason why the usage cannot be read.
pub(super) async fn read(
    cluster: &Cluster,
    run: &Run,
    tasks: &mut [TaskUsage],
) -> Result<(), String> {
    let path = format!(
        "/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods",
        run.namespace
    );
    let selector = format!("{}={}", names::RUN, run.label());
    let query = [("labelSelector", selector.as_str())];
    let proxy = cluster.proxy();
    let answer = tokio::time::timeout(TIMEOUT, proxy.get(&path, &query)).await;
    let list = match answer {
        Ok(Ok(list)) => list,
        Ok(Err(error)) if error.is_not_found() => {
            return Err("CPU and memory of pods: the cluster has no metrics server".to_owned());
        }
        Ok(Err(error)) => return Err(format!("CPU and memory of pods: {error}")),
        Err(_) => {
            let seconds = TIMEOUT.as_secs();
            return Err(format!(
                "CPU and memory of pods: no answer within {seconds} s"
            ));
        }
    };
    for pod in queries::items::<PodMetrics>(list) {
        let task = tasks
            .iter_mut()
            .find(|task| task.is_running && task.pod == pod.metadata.name);
        let Some(task) = task else { continue };
        let mut containers = pod.containers.iter();
        let own = containers.find(|container| container.name == task.container);
        task.current = own.and_then(|own| {
            Some(CurrentUsage {
                cpu: quantity(&own.usage, "cpu")?,
                memory: quantity(&own.usage, "memory")?,
            })
        });
    }
    Ok(())
}
