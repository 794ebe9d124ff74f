//! Deletion of a CustomResourceDefinition. A finalizer keeps it until all of its custom objects are
//! deleted.

use jiff::Timestamp;
use longshore_builtin::json;
use longshore_model::time;
use serde_json::Value;

use super::set_condition;

/// The finalizer that keeps a definition until its custom objects are deleted.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Marks a definition for deletion. As in Kubernetes, this ignores the
/// propagation policy and does not increment the generation.
pub(crate) fn mark_for_deletion(definition: &mut json::Object, now: Timestamp) {
    let metadata = json::child(definition, "metadata");
    metadata.insert("deletionTimestamp".into(), time::seconds(now).into());
    let finalizers = metadata
        .entry("finalizers")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = finalizers
        && !list.iter().any(|name| name == CLEANUP_FINALIZER)
    {
        list.push(CLEANUP_FINALIZER.into());
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
