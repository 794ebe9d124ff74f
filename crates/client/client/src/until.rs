//! Conditions to wait for: `view.wait(name, until::ready, timeout)`.
//!
//! A condition is any function from an item to `bool`. This module has the most frequent
//! ones.

use crate::{cluster::Connection, item::Item, kind::Object};

/// Returns true if the object is ready: a Pod or Node is `Ready`; a Deployment, StatefulSet,
/// DaemonSet or ReplicaSet has all its pods, ready and of the current template; a Job is complete;
/// a claim is bound; a CustomResourceDefinition is established. Objects of other kinds are ready if
/// their condition `Ready`, otherwise `Available`, is true, or if they have no conditions.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::until;
/// # let spec = serde_json::json!({"containers": [{"name": "main", "image": "busybox"}]});
/// # let pod = serde_json::json!({"metadata": {"name": "web"}, "spec": spec});
/// let pods = cluster.pods().in_namespace("default")?;
/// # pods.create(&pod).await?;
/// # let ready = serde_json::json!({"type": "Ready", "status": "True"});
/// # let status = serde_json::json!({"phase": "Running", "conditions": [ready]});
/// # let patch = longshore_client::Patch::merge(serde_json::json!({"status": status}));
/// # pods.patch_status("web", &patch).await?;
/// let pod = pods.wait("web", until::ready, Duration::from_secs(60)).await?;
/// assert!(pod.holds("Ready")?);
/// # Ok(()) });
/// ```
pub fn ready<K: Object, C: Connection>(item: &Item<K, C>) -> bool {
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

/// Returns true if the object has finished: a Job is complete or has failed, a Pod has succeeded or
/// failed. Other kinds do not finish.
///
/// ```
/// # longshore_embedded::example_with_pods(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::until;
/// # let containers = serde_json::json!([{"name": "main", "image": "any", "command": ["true"]}]);
/// # let spec = serde_json::json!({"restartPolicy": "Never", "containers": containers});
/// # let template = serde_json::json!({"spec": spec});
/// # let job = serde_json::json!({"metadata": {"name": "train"}, "spec": {"template": template}});
/// let jobs = cluster.jobs().in_namespace("default")?;
/// # jobs.create(&job).await?;
/// let job = jobs.wait("train", until::finished, Duration::from_secs(3600)).await?;
/// assert!(until::finished(&job) && job.holds("Complete")?);
/// # Ok(()) });
/// ```
pub fn finished<K: Object, C: Connection>(item: &Item<K, C>) -> bool {
    let gvk = &item.kind().gvk;
    match (gvk.group.as_ref(), gvk.kind.as_ref()) {
        ("batch", "Job") => holds(item, "Complete") || holds(item, "Failed"),
        ("", "Pod") => matches!(phase(item).as_str(), "Succeeded" | "Failed"),
        _ => false,
    }
}

/// Returns a predicate for a condition: true if the condition of the object is true, for example
/// `condition("Available")`.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::{Patch, until};
/// use serde_json::json;
/// # let labels = json!({"app": "web"});
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
/// # let spec = json!({"paused": true, "selector": {"matchLabels": labels}, "template": template});
/// let web = cluster.deployments().in_namespace("default")?;
/// # web.create(&json!({"metadata": {"name": "web"}, "spec": spec})).await?;
/// let stuck = json!({"type": "ReplicaFailure", "status": "True"});
/// web.patch_status("web", &Patch::merge(json!({"status": {"conditions": [stuck]}}))).await?;
/// let failing = until::condition("ReplicaFailure");
/// let item = web.wait("web", failing, Duration::from_secs(60)).await?;
/// assert!(item.holds("ReplicaFailure")?);
/// # Ok(()) });
/// ```
pub fn condition<K: Object, C: Connection>(
    kind: &str,
) -> impl FnMut(&Item<K, C>) -> bool + Send + use<K, C> {
    let kind = kind.to_owned();
    move |item| holds(item, &kind)
}

fn holds<K: Object, C: Connection>(item: &Item<K, C>, kind: &str) -> bool {
    item.holds(kind).unwrap_or(false)
}

fn phase<K: Object, C: Connection>(item: &Item<K, C>) -> String {
    let phase = item.field(&["status", "phase"]);
    phase.ok().flatten().unwrap_or_default()
}

fn number<K: Object, C: Connection>(item: &Item<K, C>, path: &[&str]) -> Option<i64> {
    item.field(path).ok().flatten()
}

/// The controller has observed the current generation.
fn observed<K: Object, C: Connection>(item: &Item<K, C>) -> bool {
    let seen = number(item, &["status", "observedGeneration"]);
    seen >= item.meta().generation
}

fn replicas<K: Object, C: Connection>(item: &Item<K, C>) -> bool {
    let wanted = number(item, &["spec", "replicas"]).unwrap_or(1);
    let count = |field| number(item, &["status", field]).unwrap_or(0);
    observed(item)
        && count("replicas") == wanted
        && count("readyReplicas") == wanted
        && (!has_updates(item) || count("updatedReplicas") == wanted)
}

/// Returns true if the kind replaces its pods when its template changes. Other kinds with replicas
/// have no counts of updated pods.
pub(crate) fn has_updates<K: Object, C: Connection>(item: &Item<K, C>) -> bool {
    matches!(item.kind().gvk.kind.as_ref(), "Deployment" | "StatefulSet")
}

fn daemons<K: Object, C: Connection>(item: &Item<K, C>) -> bool {
    let count = |field| number(item, &["status", field]).unwrap_or(0);
    let wanted = count("desiredNumberScheduled");
    observed(item) && count("updatedNumberScheduled") == wanted && count("numberReady") == wanted
}

fn others<K: Object, C: Connection>(item: &Item<K, C>) -> bool {
    for kind in ["Ready", "Available"] {
        if let Ok(Some(found)) = item.condition(kind) {
            return found.holds();
        }
    }
    // Pods and nodes have conditions as soon as a kubelet manages them.
    !matches!(item.kind().gvk.kind.as_ref(), "Pod" | "Node")
}
