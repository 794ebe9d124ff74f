//! The deletion of a definition: a finalizer keeps it until its objects are gone.

use jiff::Timestamp;
use longshore_model::time;
use serde_json::Value;

use super::set_condition;
use crate::json;

/// The finalizer that keeps a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What the first delete of a definition does to it: as in Kubernetes neither
/// a policy for dependents nor the generation counts.
pub(crate) fn begin_deletion(definition: &mut json::Object, now: Timestamp) {
    let metadata = json::child(definition, "metadata");
    metadata.insert("deletionTimestamp".into(), time::seconds(now).into());
    let finalizers = metadata
        .entry("finalizers")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = finalizers
        && !list.iter().any(|name| name == CLEANUP)
    {
        list.push(CLEANUP.into());
    }
    let message =
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(
        definition,
        "Terminating",
        true,
        "InstanceDeletionPending",
        message,
        now,
    );
}
