//! What is asked of all definitions whenever one of them is written: so little
//! of each that none has to be read for it.

use serde_json::Value;

use super::{CLEANUP, holds};
use crate::json;

/// What is known of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) uid: Box<str>,
    pub(crate) group: Box<str>,
    /// Its accepted names, of resources and of kinds.
    pub(crate) resources: Vec<Box<str>>,
    pub(crate) kinds: Vec<Box<str>>,
    /// Whether it has the names it asks for.
    pub(crate) has_its_names: bool,
    pub(crate) is_established: bool,
    /// Whether it is being deleted and waits for its objects to go.
    pub(crate) awaits_cleanup: bool,
}

impl Outline {
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
            has_its_names: asked == names,
            is_established: holds(definition, "Established"),
            awaits_cleanup: json::at(definition, "metadata.deletionTimestamp").is_some()
                && finalizers.is_some_and(|list| list.iter().any(|name| name == CLEANUP)),
        }
    }
}
