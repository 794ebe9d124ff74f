//! Defaults of CustomResourceDefinitions.

use serde_json::{Value, json};

use crate::json::{self, Object};

/// The name of the storage version.
fn storage_version(definition: &Object) -> Option<String> {
    crate::definition::versions(definition)
        .find(|version| version.get("storage") == Some(&Value::Bool(true)))
        .map(|version| json::text(version, "name").to_owned())
}

/// The status of a new definition contains only its storage version.
pub(crate) fn on_create(definition: &mut Object) {
    let stored: Vec<String> = storage_version(definition).into_iter().collect();
    let status = json!({
        "acceptedNames": {"kind": "", "plural": ""},
        "conditions": [],
        "storedVersions": stored,
    });
    definition.insert("status".into(), status);
}

/// Adds the current storage version to `status.storedVersions`.
pub(crate) fn on_update(definition: &mut Object) {
    let Some(version) = storage_version(definition) else {
        return;
    };
    let stored = json::child(definition, "status")
        .entry("storedVersions")
        .or_insert_with(|| json!([]));
    if let Value::Array(list) = stored
        && !list.iter().any(|known| *known == version)
    {
        list.push(version.into());
    }
}

pub(crate) fn fill(definition: &mut Object) {
    let spec = json::child(definition, "spec");
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.remove("preserveUnknownFields");
    }
    let names = json::child(spec, "names");
    let kind = json::text(names, "kind").to_owned();
    if !kind.is_empty() {
        json::default_text(names, "singular", &kind.to_lowercase());
        json::default_text(names, "listKind", &format!("{kind}List"));
    }
    let conversion = json::child(spec, "conversion");
    json::default_text(conversion, "strategy", "None");
    if let Some(Value::Object(service)) = conversion
        .get_mut("webhook")
        .and_then(|webhook| webhook.pointer_mut("/clientConfig/service"))
    {
        json::default(service, "port", 443);
    }
}
