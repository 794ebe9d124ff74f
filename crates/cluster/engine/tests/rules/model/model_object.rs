//! The representation of an object in the model: the parts that the operations change.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kind::{ApiVersion, Key, Kind};

/// An object of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelObject {
    pub uid: String,
    pub version: u64,
    pub generation: i64,
    pub label: String,
    pub finalizers: Vec<String>,
    /// The value of the spec: data, image, parallelism, a namespace's finalizers, or the
    /// versions of a definition.
    pub value: String,
    pub status: String,
    pub node: String,
    /// The grace period in seconds after the start of the deletion; [`NO_GRACE`] if none
    /// was given.
    pub grace: Option<i64>,
    /// The owners of the fields above, for a ConfigMap.
    pub owners: BTreeMap<Manager, BTreeSet<String>>,
    /// The version in which a shoe is stored, once it has been written.
    pub stored: Unseen,
    /// In the content of an update: the client made the object up, rather than reading it.
    pub is_new: bool,
}

/// The first deletion of a definition has no grace period.
pub const NO_GRACE: i64 = -1;

/// The label of a namespace that is finalized.
pub const FINALIZED: u8 = 2;

/// A manager and its operation: `m1 Apply`.
pub type Manager = String;

/// A value that the model knows but clients cannot see. It always compares equal.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Unseen(pub String);

impl PartialEq for Unseen {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Unseen {}

pub type State = BTreeMap<Key, ModelObject>;

/// Names of fields that can be owned.
pub const LABEL: &str = "label";
pub const VALUE: &str = "value";
/// The field that every body has.
pub const ALWAYS: &str = "k";
const FINALIZERS: &str = "finalizers";

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

impl ModelObject {
    pub fn read(kind: Kind, value: &Value) -> Self {
        let metadata = &value["metadata"];
        let is_deleting = metadata["deletionTimestamp"].is_string();
        Self {
            uid: text(&metadata["uid"]),
            version: text(&metadata["resourceVersion"])
                .parse()
                .unwrap_or_default(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            label: text(&metadata["labels"]["l"]),
            finalizers: strings(&metadata["finalizers"]),
            value: match kind {
                Kind::ConfigMap => text(&value["data"]["a"]),
                Kind::Pod => text(&value["spec"]["containers"][0]["image"]),
                Kind::Job => value["spec"]["parallelism"].to_string(),
                Kind::Namespace => strings(&value["spec"]["finalizers"]).join(","),
                Kind::Account => String::new(),
                Kind::Definition => versions_read(&value["spec"]["versions"]),
                Kind::Shoe => value["spec"]["size"].to_string(),
            },
            status: status_read(kind, &value["status"]),
            node: text(&value["spec"]["nodeName"]),
            owners: if kind == Kind::ConfigMap {
                owners(&metadata["managedFields"])
            } else {
                BTreeMap::new()
            },
            stored: Unseen::default(),
            is_new: metadata["uid"].is_null(),
            grace: is_deleting.then(|| {
                metadata["deletionGracePeriodSeconds"]
                    .as_i64()
                    .unwrap_or(NO_GRACE)
            }),
        }
    }

    /// The fields that can be owned, with their values.
    pub fn ownable(&self) -> BTreeMap<String, String> {
        let mut fields = BTreeMap::from([(ALWAYS.to_owned(), String::new())]);
        for (name, value) in [(LABEL, &self.label), (VALUE, &self.value)] {
            if !value.is_empty() {
                fields.insert(name.to_owned(), value.clone());
            }
        }
        if !self.finalizers.is_empty() {
            fields.insert(FINALIZERS.to_owned(), String::new());
        }
        let each = self.finalizers.iter();
        fields.extend(each.map(|name| (format!("v:{name:?}"), String::new())));
        fields
    }
}

fn status_read(kind: Kind, status: &Value) -> String {
    match kind {
        Kind::Pod => text(&status["message"]),
        Kind::Job => status["active"].as_i64().unwrap_or_default().to_string(),
        // Objects of this kind are created without a status.
        Kind::Shoe => status["replicas"]
            .as_i64()
            .map(|replicas| replicas.to_string())
            .unwrap_or_default(),
        Kind::Definition => {
            let last = status["conditions"].as_array().and_then(|all| all.last());
            let phase = last.map_or_else(String::new, |condition| text(&condition["reason"]));
            format!("{} {phase}", strings(&status["storedVersions"]).join(","))
        }
        _ => String::new(),
    }
}

/// The served versions and the storage version of a definition.
fn versions_read(versions: &Value) -> String {
    let that = |is: &str| {
        let all = versions.as_array().into_iter().flatten();
        let some = all.filter(|version| version[is] == true);
        some.map(|version| text(&version["name"]))
            .collect::<Vec<_>>()
            .join(",")
    };
    format!("{} {}", that("served"), that("storage"))
}

/// The owners, in `managedFields`, of the fields that the model knows.
fn owners(entries: &Value) -> BTreeMap<Manager, BTreeSet<String>> {
    let mut owners = BTreeMap::new();
    for entry in entries.as_array().into_iter().flatten() {
        let fields = &entry["fieldsV1"];
        let mut owned = BTreeSet::new();
        if fields["f:metadata"]["f:labels"]["f:l"].is_object() {
            owned.insert(LABEL.to_owned());
        }
        if fields["f:data"]["f:a"].is_object() {
            owned.insert(VALUE.to_owned());
        }
        if fields["f:data"]["f:k"].is_object() {
            owned.insert(ALWAYS.to_owned());
        }
        let finalizers = fields["f:metadata"]["f:finalizers"].as_object();
        for name in finalizers.into_iter().flat_map(serde_json::Map::keys) {
            owned.insert(if name == "." {
                FINALIZERS.to_owned()
            } else {
                name.clone()
            });
        }
        if !owned.is_empty() {
            let manager = format!("{} {}", text(&entry["manager"]), text(&entry["operation"]));
            assert!(owners.insert(manager, owned).is_none(), "{entries}");
        }
    }
    owners
}

/// The JSON of a new object, with a label and a value. The label and the field `k` always
/// exist, so that the parents of patched fields exist. A status in it is ignored.
pub fn body(key: &Key, label: u8, value: u8, finalizer: bool) -> Value {
    let mut metadata = json!({"name": key.name, "labels": {"l": label.to_string(), "k": "k"}});
    if finalizer {
        metadata["finalizers"] = json!(["a.b/c"]);
    }
    let container = json!({"name": "c", "image": image(value)});
    match key.kind {
        Kind::ConfigMap => {
            json!({"metadata": metadata, "data": {"a": value.to_string(), "k": "k"}})
        }
        Kind::Pod => json!({"metadata": metadata, "spec": {
                "automountServiceAccountToken": false, "containers": [container]},
            "status": {"message": "sent"}}),
        Kind::Job => json!({"metadata": metadata, "spec": {"parallelism": value,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
            "status": {"active": 9}}),
        Kind::Namespace | Kind::Account => json!({"metadata": metadata}),
        Kind::Definition => json!({"metadata": metadata, "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "shoes", "kind": "Shoe"}, "versions": versions(value)}}),
        Kind::Shoe => {
            json!({"metadata": metadata, "spec": {"size": value}, "status": {"replicas": 9}})
        }
    }
}

/// The versions of a definition for a value: the second version is served from 1 on, and is
/// the storage version from 2 on.
pub fn versions(value: u8) -> Value {
    let number = json!({"type": "integer"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": number}},
        "status": {"type": "object", "properties": {"replicas": number}}}});
    let version = |api_version: ApiVersion, served: bool, storage: bool| {
        json!({"name": api_version.name(), "served": served, "storage": storage,
            "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}})
    };
    json!([
        version(ApiVersion::V1, true, value < 2),
        version(ApiVersion::V2, value > 0, value >= 2)
    ])
}

pub fn image(value: u8) -> String {
    format!("i:{value}")
}

/// [`ModelObject::value`] for a value.
pub fn shown(kind: Kind, value: u8) -> String {
    match kind {
        Kind::Pod => image(value),
        Kind::Namespace => "kubernetes".to_owned(),
        Kind::Account => String::new(),
        Kind::Definition => versions_read(&versions(value)),
        Kind::ConfigMap | Kind::Job | Kind::Shoe => value.to_string(),
    }
}
