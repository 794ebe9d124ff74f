//! Executes the changes of pods.

use std::sync::Arc;

use longshore_client::Error;

use super::{facts::DaemonSet, manage::Changes, template::pod};
use crate::{
    concurrent::all,
    events::Severity,
    pod_facts::{Phase, PodFacts},
    refusal::{is_terminating, message},
    replicas::{BURST, batches},
    workload::Requests,
};

/// Creates and deletes pods.
///
/// # Errors
/// A request failed. The other requests were sent.
pub(super) async fn apply(
    requests: &Requests<DaemonSet>,
    set: &DaemonSet,
    changes: &Changes,
    hash: &str,
) -> Result<(), Error> {
    for (pod, node) in &changes.ended {
        report_ended(requests, set, pod, node);
    }
    let created = create(requests, set, &changes.create, hash).await;
    let deletions = changes.delete.iter().take(BURST);
    let deletions = deletions.map(|pod| delete(requests, set, pod));
    let deleted = all(deletions.collect()).await;
    created.and(deleted)
}

fn report_ended(requests: &Requests<DaemonSet>, set: &DaemonSet, pod: &PodFacts, node: &str) {
    let (namespace, name) = (&pod.key.namespace, &pod.key.name);
    if pod.phase == Phase::Failed {
        let text = format!(
            "Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it"
        );
        requests.event(&set.meta, Severity::Warning, "FailedDaemonPod", &text);
    } else {
        let text = format!(
            "Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it"
        );
        requests.event(&set.meta, Severity::Normal, "SucceededDaemonPod", &text);
    }
}

async fn create(
    requests: &Requests<DaemonSet>,
    set: &DaemonSet,
    nodes: &[String],
    hash: &str,
) -> Result<(), Error> {
    let mut left = nodes;
    let mut outcome = Ok(());
    requests.store.lock().owned.begin_creating(&set.meta.uid);
    for size in batches(nodes.len().min(BURST)) {
        let Some((batch, rest)) = left.split_at_checked(size) else {
            break;
        };
        let batch = batch
            .iter()
            .map(|node| create_one(requests, set, node, hash));
        outcome = all(batch.collect()).await;
        left = rest;
        if outcome.is_err() {
            break;
        }
    }
    requests.store.lock().owned.end_creating(&set.meta.uid);
    outcome
}

async fn create_one(
    requests: &Requests<DaemonSet>,
    set: &DaemonSet,
    node: &str,
    hash: &str,
) -> Result<(), Error> {
    match requests.create_pod(&set.meta, &pod(set, node, hash)).await {
        Ok(name) => {
            let text = format!("Created pod: {name}");
            requests.event(&set.meta, Severity::Normal, "SuccessfulCreate", &text);
            Ok(())
        }
        Err(error) if is_terminating(&error) => Ok(()),
        Err(error) => {
            let text = format!("Error creating: {}", message(&error));
            requests.event(&set.meta, Severity::Warning, "FailedCreate", &text);
            Err(error)
        }
    }
}

async fn delete(
    requests: &Requests<DaemonSet>,
    set: &DaemonSet,
    pod: &Arc<PodFacts>,
) -> Result<(), Error> {
    match requests.delete_pod(pod).await {
        Ok(()) => {
            let text = format!("Deleted pod: {}", pod.key.name);
            requests.event(&set.meta, Severity::Normal, "SuccessfulDelete", &text);
            Ok(())
        }
        Err(error) => {
            let text = format!("Error deleting: {}", message(&error));
            requests.event(&set.meta, Severity::Warning, "FailedDelete", &text);
            Err(error)
        }
    }
}
