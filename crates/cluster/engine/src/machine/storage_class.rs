//! The admission plugins for claims: they set the default StorageClass of new claims, and check if
//! a claim can be expanded.

use longshore_builtin::json;
use longshore_model::{KindInfo, Quantity};
use serde_json::Value;

use super::{JsonObject, Transaction};
use crate::{Error, Subject, state::State};

/// The annotations of a default class. The first one is the current name.
const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The JSON text of a default class contains this.
const DEFAULT_CLASS_TEXT: &[u8] = br#"kubernetes.io/is-default-class":"true""#;
/// The old form of `spec.storageClassName`.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

fn is_default(class: &JsonObject) -> bool {
    DEFAULT_CLASS
        .iter()
        .any(|name| annotation(class, name) == Some("true"))
}

fn annotation<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    let annotations = json::at(object, "metadata.annotations")?;
    annotations.get(name)?.as_str()
}

/// The class that a claim names. An empty name means volumes without a class.
fn class_of(claim: &JsonObject) -> Option<&str> {
    annotation(claim, CLASS_ANNOTATION)
        .or_else(|| json::at(claim, "spec.storageClassName").and_then(Value::as_str))
}

/// The default class; the newest one if several classes are marked.
fn default_class(state: &State) -> Option<String> {
    let id = state.kinds.builtin_id("storage.k8s.io", "StorageClass")?;
    let classes = state.table(id).objects.values();
    let defaults = classes
        // Searching the JSON text is faster than decoding it.
        .filter(|class| {
            let mut windows = class.bytes().windows(DEFAULT_CLASS_TEXT.len());
            windows.any(|window| window == DEFAULT_CLASS_TEXT)
        })
        .map(|class| class.map())
        .filter(is_default);
    let text = |class: &JsonObject, path| json::text(class, path).to_owned();
    defaults
        .map(|class| {
            let created = text(&class, "metadata.creationTimestamp");
            (created, text(&class, "metadata.name"))
        })
        // If classes were created in the same second, the first by name wins.
        .max_by(|(created, name), (other, other_name)| {
            created.cmp(other).then_with(|| other_name.cmp(name))
        })
        .map(|(_, name)| name)
}

/// Sets the default class of a new claim that does not name a class.
pub(super) fn apply_to_claim(state: &State, claim: &mut JsonObject) {
    if class_of(claim).is_some() {
        return;
    }
    if let Some(name) = default_class(state) {
        json::child(claim, "spec").insert("storageClassName".into(), name.into());
    }
}

/// Rejects the expansion of a claim that is not bound, or whose class does not
/// allow it (403).
pub(super) fn check_expansion(
    tx: &Transaction<'_>,
    info: &KindInfo,
    before: &JsonObject,
    claim: &JsonObject,
) -> Result<(), Error> {
    let size = |claim: &JsonObject| -> Option<f64> {
        let size: Quantity = json::text(claim, "spec.resources.requests.storage")
            .parse()
            .ok()?;
        Some(size.value())
    };
    if size(claim) <= size(before) {
        return Ok(());
    }
    let reason = if json::text(before, "status.phase") != "Bound" {
        "Only bound persistent volume claims can be expanded"
    } else if !allows_expansion(tx.state(), before, claim) {
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
    } else {
        return Ok(());
    };
    Err(Error::Forbidden {
        subject: Subject::new(info, json::text(claim, "metadata.name")),
        reason: reason.to_owned(),
        causes: Vec::new(),
    })
}

fn allows_expansion(state: &State, before: &JsonObject, claim: &JsonObject) -> bool {
    let name = class_of(claim).unwrap_or_default();
    let class = state
        .kinds
        .builtin_id("storage.k8s.io", "StorageClass")
        .and_then(|id| state.table(id).objects.get(name));
    class_of(before) == class_of(claim)
        && class.is_some_and(|class| class.map().get("allowVolumeExpansion") == Some(&true.into()))
}
