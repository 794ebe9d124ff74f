//! A stored object: its JSON and the properties that reads need.

mod read;
mod write;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use imbl::OrdMap;
use longshore_builtin::KindRules;
use serde_json::{Map, Value};

pub(crate) use self::write::kind_first;
use self::write::{FIRST_SIZE, MANAGED, write};
use crate::rules::ViewRules;

/// The labels of an object. Successive versions share them while they do not
/// change.
pub(crate) type Labels = Arc<BTreeMap<String, String>>;

/// The objects of a kind by key.
pub(crate) type Objects = OrdMap<Arc<str>, Arc<Object>>;

/// An immutable snapshot of an object.
#[derive(Debug, Clone)]
pub struct Object {
    bytes: Bytes,
    /// `namespace/name`, or `name`.
    key: Arc<str>,
    uid: Box<str>,
    revision: u64,
    labels: Labels,
    /// The values of the kind's selectable fields, in the order of the table of
    /// rules, each terminated by a NUL.
    fields: Box<str>,
    /// Position of the resource version's digits in `bytes`.
    version_at: Range<u32>,
    /// Position of the value of `managedFields` in `bytes`; empty if the object has none.
    managed_at: Range<u32>,
}

impl Object {
    /// The JSON, including `apiVersion` and `kind`.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The decoded JSON.
    #[must_use]
    pub fn value(&self) -> Value {
        // The bytes were written by `encode` or validated when the store was
        // opened.
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The fields without `managedFields`, which are rarely needed and
    /// expensive to decode.
    pub(crate) fn map(&self) -> Map<String, Value> {
        let Range { start, end } = self.managed_at;
        if start == end {
            return self.full_map();
        }
        let (start, end) = (start as usize, end as usize);
        let start = start - MANAGED.len();
        // Also remove one comma: the following one, next to the version.
        let (start, end) = match (self.bytes[start - 1], self.bytes[end]) {
            (_, b',') => (start, end + 1),
            (b',', _) => (start - 1, end),
            _ => (start, end),
        };
        let mut text = Vec::with_capacity(self.bytes.len() - (end - start));
        text.extend_from_slice(&self.bytes[..start]);
        text.extend_from_slice(&self.bytes[end..]);
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Returns true if the object has a deletion timestamp. Does not decode the whole object.
    pub(crate) fn is_being_deleted(&self) -> bool {
        read::is_being_deleted(&self.bytes)
    }

    /// All fields.
    pub(crate) fn full_map(&self) -> Map<String, Value> {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The text of `managedFields`; empty if the object has none.
    pub(crate) fn managed(&self) -> &str {
        let at = self.managed_at.start as usize..self.managed_at.end as usize;
        std::str::from_utf8(&self.bytes[at]).unwrap_or_default()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key
            .split_once('/')
            .map_or(&*self.key, |(_, name)| name)
    }

    /// The namespace; `None` for cluster-scoped kinds.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The resource version: the revision of the write that created this state.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The labels.
    #[must_use]
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// The value of a selectable field. `None` if the kind does not have the field, or if it is a
    /// field of a custom kind: these fields change with the definition and the version while the
    /// objects stay, and are looked up on demand.
    pub(crate) fn field(&self, rules: &ViewRules, path: &str) -> Option<Cow<'_, str>> {
        match path {
            "metadata.name" => Some(self.name().into()),
            "metadata.namespace" => Some(self.namespace().unwrap_or_default().into()),
            _ => {
                let index = rules.index_of(path)?;
                self.fields.split('\0').nth(index).map(Cow::Borrowed)
            }
        }
    }

    /// The same state with another resource version. A watch reports it for a deletion, or for an
    /// object that no longer matches its selectors.
    pub(crate) fn with_revision(&self, revision: u64) -> Self {
        let at = self.version_at.start as usize..self.version_at.end as usize;
        let digits = revision.to_string();
        let mut bytes = Vec::with_capacity(self.bytes.len() + digits.len() - at.len());
        bytes.extend_from_slice(&self.bytes[..at.start]);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(&self.bytes[at.end..]);
        let version_at = self.version_at.start..self.version_at.start + digits.len() as u32;
        // Positions after the version shift with its length.
        let moved = |place: u32| match place > self.version_at.start {
            true => place - self.version_at.end + version_at.end,
            false => place,
        };
        Self {
            bytes: bytes.into(),
            revision,
            managed_at: moved(self.managed_at.start)..moved(self.managed_at.end),
            version_at,
            ..self.clone()
        }
    }

    /// The same object with another UID and creation time. `None` if the texts do not have the same
    /// length.
    pub(crate) fn renewed(&self, uid: &str, created: &str) -> Option<Self> {
        const CREATED: &str = "\"creationTimestamp\":\"";
        let text = std::str::from_utf8(&self.bytes).ok()?;
        let at = text.find(CREATED)? + CREATED.len();
        let before = text.get(at..)?.split('"').next()?;
        if uid.len() != self.uid.len() || created.len() != before.len() {
            return None;
        }
        let text = text.replace(&*self.uid, uid).replace(before, created);
        Some(Self {
            bytes: text.into(),
            uid: uid.into(),
            ..self.clone()
        })
    }

    /// The same object with another JSON representation.
    pub(crate) fn with_value(&self, value: &Map<String, Value>) -> Self {
        let size = self.bytes.len();
        let (bytes, version_at, managed_at) = write(value, self.managed(), self.revision, size);
        Self {
            bytes,
            version_at,
            managed_at,
            ..self.clone()
        }
    }

    /// The same object with another JSON representation and without managed
    /// fields.
    pub(crate) fn with_unmanaged_value(&self, value: &Map<String, Value>) -> Self {
        let size = self.bytes.len();
        let (bytes, version_at, managed_at) = write(value, "", self.revision, size);
        Self {
            bytes,
            version_at,
            managed_at,
            ..self.clone()
        }
    }

    /// Encodes an object at a revision (0: none, for an object that is not
    /// stored) with the given text of `managedFields`. Ignores a resource
    /// version and managed fields in `value`.
    pub(crate) fn encode(
        value: &Map<String, Value>,
        managed: &str,
        rules: &KindRules,
        revision: u64,
        before: Option<&Object>,
    ) -> Self {
        let metadata = value.get("metadata").and_then(Value::as_object);
        let text = |name: &str| {
            metadata
                .and_then(|m| m.get(name)?.as_str())
                .unwrap_or_default()
        };
        let size = before.map_or(FIRST_SIZE + managed.len(), |o| o.bytes.len());
        let (bytes, version_at, managed_at) = write(value, managed, revision, size);
        let key = match before {
            Some(before) => before.key.clone(),
            None => key(Some(text("namespace")), text("name")),
        };
        let labels: BTreeMap<String, String> = metadata
            .and_then(|metadata| metadata.get("labels")?.as_object())
            .map(|labels| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                labels
                    .iter()
                    .map(|(key, value)| (key.clone(), text(value)))
                    .collect()
            })
            .unwrap_or_default();
        let labels = match before {
            Some(before) if *before.labels == labels => before.labels.clone(),
            _ => shared(labels),
        };
        Self {
            bytes,
            key,
            uid: text("uid").into(),
            revision,
            labels,
            fields: rules.extract(value),
            version_at,
            managed_at,
        }
    }
}

/// Shares labels; all objects without labels use the same instance.
fn shared(labels: BTreeMap<String, String>) -> Labels {
    static NONE: OnceLock<Labels> = OnceLock::new();
    if labels.is_empty() {
        return NONE.get_or_init(Labels::default).clone();
    }
    Arc::new(labels)
}

/// The key of an object within its kind: `namespace/name`, or `name`.
pub(crate) fn key(namespace: Option<&str>, name: &str) -> Arc<str> {
    match namespace {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}").into(),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    const MANAGED_TEXT: &str = r#"[{"manager":"m"}]"#;

    fn pod() -> Object {
        let value = json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"x": "{"},
                "annotations": {"resourceVersion": "7"}},
            "spec": {"nodeName": "here", "hostNetwork": true},
            "status": {"phase": "Running"},
        });
        let rules = longshore_builtin::find("", "Pod").unwrap();
        Object::encode(value.as_object().unwrap(), MANAGED_TEXT, rules, 99, None)
    }

    #[test]
    fn objects_provide_their_properties() {
        let pod = pod();
        assert_eq!(
            (pod.name(), pod.namespace(), pod.uid()),
            ("a", Some("n"), "u")
        );
        assert_eq!(pod.labels()["x"], "{");
        let rules = &ViewRules::from(longshore_builtin::find("", "Pod").unwrap());
        assert_eq!(pod.field(rules, "spec.nodeName"), Some("here".into()));
        assert_eq!(pod.field(rules, "spec.hostNetwork"), Some("true".into()));
        assert_eq!(pod.field(rules, "status.phase"), Some("Running".into()));
        assert_eq!(pod.field(rules, "status.podIP"), Some("".into()));
        assert_eq!(pod.field(rules, "spec.shoes"), None);
    }

    #[test]
    fn managed_fields_are_separate_from_other_fields() {
        let pod = pod();
        assert_eq!(pod.managed(), MANAGED_TEXT);
        assert_eq!(pod.value()["metadata"]["managedFields"][0]["manager"], "m");
        let mut bare = pod.full_map();
        let metadata = bare["metadata"].as_object_mut().unwrap();
        metadata.remove("managedFields");
        assert_eq!(pod.map(), bare);
        let rules = longshore_builtin::find("", "Pod").unwrap();
        let without = Object::encode(&pod.map(), "", rules, 99, None);
        assert_eq!((without.managed(), without.map()), ("", bare.clone()));
        let unstored = Object::encode(&pod.map(), MANAGED_TEXT, rules, 0, None);
        let metadata = bare["metadata"].as_object_mut().unwrap();
        metadata.remove("resourceVersion");
        assert_eq!((unstored.managed(), unstored.map()), (MANAGED_TEXT, bare));
    }

    #[test]
    fn a_new_resource_version_changes_nothing_else() {
        let (old, new) = (pod(), pod().with_revision(1_000_000));
        assert_eq!(new.revision(), 1_000_000);
        let (mut a, b) = (old.value(), new.value());
        assert_eq!(b["metadata"]["resourceVersion"], "1000000");
        a["metadata"]["resourceVersion"] = json!("1000000");
        assert_eq!(a, b);
        assert_eq!(new.with_revision(99).bytes(), old.bytes());
    }

    /// Covers a kind whose managed fields follow the version, and one whose
    /// managed fields precede it.
    #[test]
    fn managed_fields_survive_resource_versions_of_other_lengths() {
        for (version, kind) in [("v1", "Pod"), ("example.com/v1", "Ship")] {
            let value = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
            let value = value.as_object().unwrap();
            for managed in [MANAGED_TEXT, ""] {
                let old = Object::encode(
                    value,
                    managed,
                    longshore_builtin::find("", "Pod").unwrap(),
                    999,
                    None,
                );
                for revision in [1, 1_000, 10_000_000] {
                    let new = old.with_revision(revision);
                    assert_eq!(new.managed(), managed, "{kind} {revision}");
                    let map = new.map();
                    assert_eq!(map["metadata"]["name"], "a");
                    assert!(
                        !map["metadata"]
                            .as_object()
                            .unwrap()
                            .contains_key("managedFields")
                    );
                    assert_eq!(map["metadata"]["resourceVersion"], revision.to_string());
                }
            }
        }
    }

    #[test]
    fn encoding_and_decoding_round_trips() {
        let old = pod();
        let new = Object::decode(old.bytes(), longshore_builtin::find("", "Pod").unwrap()).unwrap();
        assert_eq!(new.bytes(), old.bytes());
        assert_eq!(
            (new.key(), new.revision(), &new.fields),
            (old.key(), 99, &old.fields)
        );
        assert!(Object::decode(b"{}", longshore_builtin::find("", "Pod").unwrap()).is_err());
    }
}
