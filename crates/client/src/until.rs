//! Conditions to wait for: `view.wait(name, until::ready, timeout)`.
//!
//! Any function from an item to `bool` is one; here are those that are wanted
//! most.

use crate::{item::Item, kinds::Kind};

/// Whether the object does what it is for: a Pod or Node is `Ready`, a
/// Deployment, StatefulSet, DaemonSet or ReplicaSet has all its pods, of the
/// newest template and ready, a Job is complete, a claim is bound, a
/// CustomResourceDefinition is established. Another kind is ready when its
/// condition `Ready`, or else `Available`, holds; without conditions, when it
/// is there.
///
/// ```
/// # async fn example(cluster: longshore_client::Cluster) -> longshore_client::Result<()> {
/// use std::time::Duration;
/// use longshore_client::until;
/// let pods = cluster.pods().in_namespace("default")?;
/// let pod = pods.wait("web", until::ready, Duration::from_secs(60)).await?;
/// assert!(pod.holds("Ready")?);
/// # Ok(())
/// # }
/// ```
pub fn ready<K: Kind>(item: &Item<K>) -> bool {
    if item.meta().deletion_timestamp.is_some() {
        return false;
    }
    let gvk = &item.kind().gvk;
    match (gvk.group.as_ref(), gvk.kind.as_ref()) {
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") | ("", "ReplicationController") => {
            replicas(item)
        }
        ("apps", "DaemonSet") => daemons(item),
        ("batch", "Job") => holds(item, "Complete"),
        ("", "PersistentVolumeClaim") => phase(item) == "Bound",
        ("", "Namespace") => phase(item) == "Active",
        ("apiextensions.k8s.io", "CustomResourceDefinition") => holds(item, "Established"),
        _ => others(item),
    }
}

/// Whether the object has come to its end, well or badly: a Job is complete or
/// has failed, a Pod has succeeded or failed. Other kinds have no end.
///
/// ```
/// # async fn example(cluster: longshore_client::Cluster) -> longshore_client::Result<()> {
/// use std::time::Duration;
/// use longshore_client::until;
/// let jobs = cluster.jobs().in_namespace("default")?;
/// let job = jobs.wait("train", until::finished, Duration::from_secs(3600)).await?;
/// println!("{}", if job.is_complete()? { "done" } else { "failed" });
/// # Ok(())
/// # }
/// ```
pub fn finished<K: Kind>(item: &Item<K>) -> bool {
    let gvk = &item.kind().gvk;
    match (gvk.group.as_ref(), gvk.kind.as_ref()) {
        ("batch", "Job") => holds(item, "Complete") || holds(item, "Failed"),
        ("", "Pod") => matches!(phase(item).as_str(), "Succeeded" | "Failed"),
        _ => false,
    }
}

/// Whether a condition of the object holds, as `condition("Available")`.
pub fn condition<K: Kind>(kind: &str) -> impl FnMut(&Item<K>) -> bool + Send + use<K> {
    let kind = kind.to_owned();
    move |item| holds(item, &kind)
}

fn holds<K: Kind>(item: &Item<K>, kind: &str) -> bool {
    item.holds(kind).unwrap_or(false)
}

fn phase<K: Kind>(item: &Item<K>) -> String {
    let phase = item.field(&["status", "phase"]);
    phase.ok().flatten().unwrap_or_default()
}

fn number<K: Kind>(item: &Item<K>, path: &[&str]) -> Option<i64> {
    item.field(path).ok().flatten()
}

/// The controller has seen the newest generation.
fn observed<K: Kind>(item: &Item<K>) -> bool {
    let seen = number(item, &["status", "observedGeneration"]);
    seen >= item.meta().generation
}

fn replicas<K: Kind>(item: &Item<K>) -> bool {
    let wanted = number(item, &["spec", "replicas"]).unwrap_or(1);
    let count = |field| number(item, &["status", field]).unwrap_or(0);
    // Without templates that change, all pods are of the newest.
    let has_updates = matches!(item.kind().gvk.kind.as_ref(), "Deployment" | "StatefulSet");
    observed(item)
        && count("replicas") == wanted
        && count("readyReplicas") == wanted
        && (!has_updates || count("updatedReplicas") == wanted)
}

fn daemons<K: Kind>(item: &Item<K>) -> bool {
    let count = |field| number(item, &["status", field]).unwrap_or(0);
    let wanted = count("desiredNumberScheduled");
    observed(item) && count("updatedNumberScheduled") == wanted && count("numberReady") == wanted
}

fn others<K: Kind>(item: &Item<K>) -> bool {
    for kind in ["Ready", "Available"] {
        if let Ok(Some(found)) = item.condition(kind) {
            return found.holds();
        }
    }
    // Pods and nodes have conditions as soon as somebody looks after them.
    !matches!(item.kind().gvk.kind.as_ref(), "Pod" | "Node")
}
