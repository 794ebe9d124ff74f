//! The kinds in play, and where objects of them are.

use std::sync::{Arc, LazyLock};

use longshore_engine::{Object, Target};
use longshore_model::{Gvk, KindInfo, Scope, kind::Words};
use serde::{Deserialize, Serialize};

use super::thing::Thing;
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
    /// The definition of the kind `Shoe`; there is one at the most.
    Definition,
    /// A custom kind.
    Shoe,
}

/// The version of the API that a client uses, where a kind has two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// Always served.
    V1,
    /// Served when the definition says so.
    V2,
}

impl Via {
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// The name of the definition.
pub const SHOES: &str = "shoes.example.com";

static VERSIONS: LazyLock<[Arc<KindInfo>; 2]> = LazyLock::new(|| {
    [Via::V1, Via::V2].map(|via| {
        Arc::new(KindInfo {
            gvk: Gvk {
                group: "example.com".into(),
                version: via.name().into(),
                kind: "Shoe".into(),
            },
            plural: "shoes".into(),
            singular: "shoe".into(),
            short_names: Words::default(),
            categories: Words::default(),
            scope: Scope::Namespaced,
            subresources: ["status".to_owned()].into_iter().collect(),
            list_kind: None,
        })
    })
});

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::ConfigMap,
        Self::Pod,
        Self::Job,
        Self::Namespace,
        Self::Account,
        Self::Definition,
        Self::Shoe,
    ];

    pub fn info(self, via: Via) -> Arc<KindInfo> {
        let plural = match self {
            Self::ConfigMap => "configmaps",
            Self::Pod => "pods",
            Self::Job => "jobs",
            Self::Namespace => "namespaces",
            Self::Account => "serviceaccounts",
            Self::Definition => "customresourcedefinitions",
            Self::Shoe => return VERSIONS[via as usize].clone(),
        };
        support::kind(plural)
    }

    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Self::Namespace | Self::Definition)
    }

    /// Whether its generation is counted.
    pub const fn has_generation(self) -> bool {
        matches!(self, Self::Pod | Self::Job | Self::Definition | Self::Shoe)
    }

    /// Whether an update may leave the version out.
    pub const fn takes_updates_without_version(self) -> bool {
        !matches!(self, Self::Definition | Self::Shoe)
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
        Self {
            kind,
            namespace: (if kind.is_namespaced() { namespace } else { "" }).to_owned(),
            name: name.to_owned(),
        }
    }

    pub fn definition() -> Self {
        Self::new(Kind::Definition, "", SHOES)
    }

    pub fn target(&self, via: Via) -> Target {
        Target {
            kind: self.kind.info(via),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.clone()),
            name: self.name.clone(),
        }
    }
}

/// What the model knows of an object that was read in a version.
pub fn known(kind: Kind, via: Via, object: &Object) -> (Key, Thing) {
    let (value, info) = (object.value(), kind.info(via));
    let key = Key::new(kind, object.namespace().unwrap_or_default(), object.name());
    let thing = Thing::read(kind, &value);
    assert_eq!(thing.version, object.revision(), "bytes of another version");
    assert_eq!(value["apiVersion"], info.api_version(), "{key:?}");
    assert_eq!(value["kind"], *info.gvk.kind, "{key:?}");
    (key, thing)
}
