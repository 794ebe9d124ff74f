//! Label selectors of webhooks and policies, and the objects and namespaces that they select.

use std::collections::BTreeMap;

use longshore_engine::{Engine, Error, ReadVersion};
use longshore_model::{LabelSelector, kind::builtin, selector::StructuredSelector};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    attributes::{Attributes, Operation},
    message::Objects,
};

type Labels = BTreeMap<String, String>;

/// Reads a selector. A missing selector selects everything. Returns `None` if it cannot be read.
pub(super) fn selector(selector: Option<&Value>) -> Option<LabelSelector> {
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
        return Some(LabelSelector::everything());
    };
    let selector = StructuredSelector::deserialize(selector).ok()?;
    LabelSelector::try_from(selector).ok()
}

fn labels(object: Option<&Value>) -> Labels {
    let labels = object.and_then(|object| object.pointer("/metadata/labels")?.as_object());
    let labels = labels.into_iter().flatten();
    labels
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// Returns true if the selector matches the object before or after the request. The options of a
/// connection have no metadata and are never selected.
pub(super) fn selects_object(selector: &LabelSelector, objects: &Objects) -> bool {
    let matches = |object: &Option<Value>| {
        let object = object
            .as_ref()
            .filter(|object| object["metadata"].is_object());
        object.is_some() && selector.matches(&labels(object))
    };
    selector.is_everything() || matches(&objects.object) || matches(&objects.old_object)
}

pub(super) fn selects_namespace(
    engine: &Engine,
    selector: &LabelSelector,
    operation: Operation,
    attributes: &Attributes,
    objects: &Objects,
) -> Result<bool, Error> {
    let is_namespace = attributes.resource.plural == "namespaces";
    // Requests for other cluster-scoped objects are always selected.
    if selector.is_everything() || (attributes.namespace.is_empty() && !is_namespace) {
        return Ok(true);
    }
    let is_written = matches!(operation, Operation::Create | Operation::Update);
    if is_namespace && is_written && attributes.subresource.is_empty() {
        return Ok(selector.matches(&labels(objects.object.as_ref())));
    }
    let Some(info) = builtin("", "Namespace") else {
        return Ok(true);
    };
    let namespace = engine.get(info, None, &attributes.namespace, ReadVersion::Latest)?;
    Ok(selector.matches(namespace.labels()))
}
