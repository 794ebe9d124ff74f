//! A summary of each definition. Every write of a definition needs these fields of all definitions;
//! the summary avoids decoding them all.

use longshore_builtin::{definition::is_condition_true, json};
use serde_json::Value;

use super::CLEANUP_FINALIZER;

/// Summary of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DefinitionSummary {
    pub(crate) uid: Box<str>,
    pub(crate) group: Box<str>,
    /// The accepted resource and kind names.
    pub(crate) resources: Vec<Box<str>>,
    pub(crate) kinds: Vec<Box<str>>,
    /// True if all requested names are accepted.
    pub(crate) has_accepted_names: bool,
    pub(crate) is_established: bool,
    /// True if the definition is being deleted and waits for its custom objects to be deleted.
    pub(crate) awaits_cleanup: bool,
}

impl DefinitionSummary {
    pub(crate) fn of(definition: &json::Object) -> Self {
        let names = json::at(definition, "status.acceptedNames").unwrap_or(&Value::Null);
        let text = |field: &str| names[field].as_str().unwrap_or_default();
        let short = names["shortNames"].as_array().into_iter().flatten();
        let short = short.filter_map(Value::as_str);
        let resources = short.chain([text("plural"), text("singular")]);
        let kinds = [text("kind"), text("listKind")];
        let given = !names.is_null();
        let asked = json::at(definition, "spec.names").unwrap_or(&Value::Null);
        let finalizers = json::at(definition, "metadata.finalizers").and_then(Value::as_array);
        Self {
            uid: json::text(definition, "metadata.uid").into(),
            group: json::text(definition, "spec.group").into(),
            resources: resources.filter(|_| given).map(Into::into).collect(),
            kinds: kinds
                .into_iter()
                .filter(|_| given)
                .map(Into::into)
                .collect(),
            has_accepted_names: asked == names,
            is_established: is_condition_true(definition, "Established"),
            awaits_cleanup: json::at(definition, "metadata.deletionTimestamp").is_some()
                && finalizers.is_some_and(|list| list.iter().any(|name| name == CLEANUP_FINALIZER)),
        }
    }
}
