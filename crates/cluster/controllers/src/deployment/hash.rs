//! Hashes and compares pod templates.

use std::collections::BTreeMap;

use longshore_client::LabelSelector;
use longshore_model::name::SUFFIX_LETTERS;
use serde_json::{Map, Value};

/// The label that distinguishes the pods of a Deployment's ReplicaSets.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// Returns the hash of a template: FNV-1a over its text and the collision count, in
/// the characters that Kubernetes uses.
pub(crate) fn hash(template: &Value, collisions: Option<i64>) -> String {
    let text = without_hash(template).unwrap_or_default().to_string();
    let salt = collisions.map(|count| count.to_string());
    let bytes = text
        .bytes()
        .chain(salt.iter().flat_map(|text| text.bytes()));
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let letters = hash.to_string();
    let letters = letters
        .bytes()
        .map(|byte| usize::from(byte) % SUFFIX_LETTERS.len());
    letters
        .map(|index| char::from(SUFFIX_LETTERS[index]))
        .collect()
}

/// Returns true if two templates are equal except for the hash label.
pub(crate) fn is_same(a: &Value, b: &Value) -> bool {
    without_hash(a) == without_hash(b)
}

/// Returns the template without the hash label and without fields that are
/// equivalent to absent ones.
fn without_hash(template: &Value) -> Option<Value> {
    let mut template = template.clone();
    let labels = template.pointer_mut("/metadata/labels");
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.remove(HASH_LABEL);
    }
    if let Some(meta) = template.get_mut("metadata") {
        let kept = meta.as_object().into_iter().flatten();
        let kept = kept.filter(|(_, value)| !value.as_object().is_some_and(Map::is_empty));
        *meta = Value::Object(kept.map(|(k, v)| (k.clone(), v.clone())).collect());
    }
    normalized(template)
}

/// Sorts fields and removes nulls and empty lists.
fn normalized(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(list) if list.is_empty() => None,
        Value::Array(list) => Some(
            list.into_iter()
                .map(|v| normalized(v).unwrap_or_default())
                .collect(),
        ),
        Value::Object(map) => {
            let mut fields: Vec<_> = map.into_iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            let fields = fields.into_iter();
            let fields = fields.filter_map(|(key, value)| Some((key, normalized(value)?)));
            Some(Value::Object(fields.collect()))
        }
        other => Some(other),
    }
}

/// Returns the template with the label `pod-template-hash`.
pub(crate) fn labelled_template(template: &Value, hash: &str) -> Value {
    let mut template = template.clone();
    template["metadata"]["labels"][HASH_LABEL] = hash.into();
    template
}

/// Returns the selector with an additional requirement for the label
/// `pod-template-hash`.
pub(crate) fn labelled_selector(selector: &Value, hash: &str) -> Value {
    let mut selector = selector.clone();
    selector["matchLabels"][HASH_LABEL] = hash.into();
    selector
}

/// Returns true if a selector matches labels. An empty selector matches nothing.
pub(crate) fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    !selector.is_everything() && selector.matches(labels)
}
