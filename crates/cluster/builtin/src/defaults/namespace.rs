//! Defaults of namespaces.

use serde_json::json;

use crate::json::{self, Object};

/// Adds the finalizer of the namespace controller, and activates the namespace.
pub(crate) fn on_create(object: &mut Object) {
    let finalizers = json::child(object, "spec")
        .entry("finalizers")
        .or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|name| name == "kubernetes")
    {
        list.push("kubernetes".into());
    }
    object.insert("status".into(), json!({"phase": "Active"}));
}

/// Labels the namespace with its name.
pub(crate) fn fill(object: &mut Object) {
    let name = json::text(object, "metadata.name").to_owned();
    let labels = json::child(json::child(object, "metadata"), "labels");
    labels.insert("kubernetes.io/metadata.name".into(), name.into());
}
