//! What the model knows of an object: the parts that the operations change.

use std::collections::BTreeMap;

use longshore_engine::Object;
use longshore_model::KindInfo;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support;

/// The kinds in play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    ConfigMap,
    Pod,
    Job,
    Namespace,
    /// Comes with namespaces; never written by itself.
    Account,
}

impl Kind {
    pub const fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Pod => "pods",
            Self::Job => "jobs",
            Self::Namespace => "namespaces",
            Self::Account => "serviceaccounts",
        }
    }

    pub fn info(self) -> std::sync::Arc<KindInfo> {
        support::kind(self.plural())
    }

    /// Whether its generation is counted.
    pub const fn has_generation(self) -> bool {
        matches!(self, Self::Pod | Self::Job)
    }
}

/// Where an object is. Kinds of the whole cluster have an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        let namespace = if kind == Kind::Namespace {
            ""
        } else {
            namespace
        };
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    pub fn of(kind: Kind, object: &Object) -> Self {
        Self::new(kind, object.namespace().unwrap_or_default(), object.name())
    }

    pub fn target(&self) -> longshore_engine::Target {
        longshore_engine::Target {
            kind: self.kind.info(),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.clone()),
            name: self.name.clone(),
        }
    }
}

/// An object, as far as the model knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    pub uid: String,
    pub version: u64,
    pub generation: i64,
    pub label: String,
    pub finalizers: Vec<String>,
    /// What a spec says: data, image, parallelism, a namespace's finalizers.
    pub value: String,
    pub status: String,
    pub node: String,
    /// Seconds of grace, once deletion has begun.
    pub grace: Option<i64>,
    /// Of what an update sends: it was not read before, but made up.
    pub is_new: bool,
}

pub type State = BTreeMap<Key, Thing>;

impl Thing {
    pub fn of(kind: Kind, object: &Object) -> Self {
        let thing = Self::read(kind, &object.value());
        assert_eq!(thing.version, object.revision(), "bytes of another version");
        thing
    }

    pub fn read(kind: Kind, value: &Value) -> Self {
        let metadata = &value["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let strings = |value: &Value| {
            value
                .as_array()
                .into_iter()
                .flatten()
                .map(text)
                .collect::<Vec<_>>()
        };
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
            },
            status: match kind {
                Kind::Pod => text(&value["status"]["message"]),
                Kind::Job => value["status"]["active"]
                    .as_i64()
                    .unwrap_or_default()
                    .to_string(),
                _ => String::new(),
            },
            node: text(&value["spec"]["nodeName"]),
            is_new: metadata["uid"].is_null(),
            grace: is_deleting.then(|| {
                metadata["deletionGracePeriodSeconds"]
                    .as_i64()
                    .unwrap_or_default()
            }),
        }
    }
}

/// A new object's JSON, with a label and a value.
pub fn body(key: &Key, label: u8, value: u8, finalizer: bool) -> Value {
    let mut metadata = json!({"name": key.name, "labels": {"l": label.to_string()}});
    if finalizer {
        metadata["finalizers"] = json!(["a.b/c"]);
    }
    let container = json!({"name": "c", "image": image(value)});
    match key.kind {
        Kind::ConfigMap => json!({"metadata": metadata, "data": {"a": value.to_string()}}),
        Kind::Pod => json!({"metadata": metadata, "spec": {"containers": [container]}}),
        Kind::Job => json!({"metadata": metadata, "spec": {"parallelism": value,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}),
        Kind::Namespace | Kind::Account => json!({"metadata": metadata}),
    }
}

pub fn image(value: u8) -> String {
    format!("i:{value}")
}

/// What [`Thing::value`] is for a value.
pub fn shown(kind: Kind, value: u8) -> String {
    match kind {
        Kind::Pod => image(value),
        Kind::Namespace => "kubernetes".to_owned(),
        Kind::Account => String::new(),
        Kind::ConfigMap | Kind::Job => value.to_string(),
    }
}
