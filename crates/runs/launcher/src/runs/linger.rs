//! Ends pods whose command has ended while another container does not end, such as an injected
//! proxy. Otherwise, their Jobs would never complete, restart the task, or start the next
//! combination of a sweep.

use std::{collections::BTreeMap, time::Duration};

use longshore_client::{Change, Cluster, DeleteOptions, Error, LabelSelector, Patch};
use longshore_diagnosis::{evidence::RunPod as _, names};
use longshore_model::facts::PodFacts;
use serde_json::json;
use tokio::time::Instant;

/// The time that the other containers of a pod may continue after its command has ended.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

/// Ends a pod with the result of its command. The node stops its other containers, and the Job
/// counts the pod. The pod and its logs are kept.
pub(crate) async fn end_pod(cluster: &Cluster, pod: &PodFacts) -> Result<(), Error> {
    let phase = match pod.has_succeeded() {
        true => "Succeeded",
        false => "Failed",
    };
    let meta = &pod.metadata;
    let change = json!({"metadata": {"uid": meta.uid}, "status": {"phase": phase}});
    let view = cluster.pods().in_namespace(meta.namespace())?;
    match view
        .patch_status(&meta.name, &Patch::strategic(change))
        .await
    {
        Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
        _ => Ok(()),
    }
}

/// Deletes a pod, if this is permitted.
pub(crate) async fn delete_pod(cluster: &Cluster, pod: &PodFacts) {
    let meta = &pod.metadata;
    let options = DeleteOptions {
        uid: Some(meta.uid.clone()),
        ..DeleteOptions::default()
    };
    let deleted = match cluster.pods().in_namespace(meta.namespace()) {
        Ok(pods) => pods.delete(&meta.name, &options).await,
        Err(error) => Err(error),
    };
    if let Err(error) = deleted {
        tracing::warn!(%error, pod = meta.name, "cannot end a pod whose command has failed");
    }
}

/// Ends pods of all runs a few seconds after their command has ended, until the cluster is closed.
/// Intended for runs without a follower.
///
/// # Errors
/// The pods cannot be watched or changed.
pub async fn end_lingering(cluster: &Cluster) -> Result<(), Error> {
    let ours = LabelSelector::exactly([(names::MANAGED_BY, names::LONGSHORE)])?;
    let mut changes = cluster.pods().labels(ours).cache().await?.subscribe();
    let mut due: BTreeMap<String, (Instant, PodFacts)> = BTreeMap::new();
    loop {
        let next = due.values().map(|(at, _)| *at).min();
        let is_due = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            change = changes.next() => match change {
                Some(Change::Upsert(item)) => {
                    let pod: Option<PodFacts> = item.typed().ok();
                    let lingers = |pod: &PodFacts| {
                        pod.lingers() && pod.metadata.deletion_timestamp.is_none()
                    };
                    match pod.filter(lingers) {
                        Some(pod) => {
                            let known = due.get(item.uid()).map(|(at, _)| *at);
                            let at = known.unwrap_or_else(|| Instant::now() + LINGER);
                            due.insert(item.uid().to_owned(), (at, pod));
                        }
                        None => drop(due.remove(item.uid())),
                    }
                }
                Some(Change::Gone(item)) => drop(due.remove(item.uid())),
                None => return Ok(()),
            },
            () = is_due => {
                let now = Instant::now();
                for (at, pod) in due.values_mut().filter(|(at, _)| *at <= now) {
                    end_pod(cluster, pod).await?;
                    // Tries again later, in case the node has missed the request.
                    *at = now + LINGER;
                }
            }
        }
    }
}
