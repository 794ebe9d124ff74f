//! The kinds that the operations use, and the keys of their objects.

use std::sync::{Arc, LazyLock};

use longshore_engine::{Object, Target};
use longshore_model::{Gvk, KindInfo, Scope, kind::Words};
use serde::{Deserialize, Serialize};

use super::model_object::ModelObject;
use crate::support;

/// The kinds that the operations use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    ConfigMap,
    Pod,
    Job,
    Namespace,
    /// Created with namespaces, never by an operation.
    Account,
    /// The definition of the kind `Shoe`. At most one exists.
    Definition,
    /// A custom kind.
    Shoe,
}

/// The API version that a client uses, for kinds with two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApiVersion {
    /// Always served.
    V1,
    /// Served if the definition serves it.
    V2,
}

impl ApiVersion {
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
    [ApiVersion::V1, ApiVersion::V2].map(|api_version| {
        Arc::new(KindInfo {
            gvk: Gvk {
                group: "example.com".into(),
                version: api_version.name().into(),
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

    pub fn info(self, api_version: ApiVersion) -> Arc<KindInfo> {
        let plural = match self {
            Self::ConfigMap => "configmaps",
            Self::Pod => "pods",
            Self::Job => "jobs",
            Self::Namespace => "namespaces",
            Self::Account => "serviceaccounts",
            Self::Definition => "customresourcedefinitions",
            Self::Shoe => return VERSIONS[api_version as usize].clone(),
        };
        support::kind(plural)
    }

    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Self::Namespace | Self::Definition)
    }

    /// Returns true if the kind has a generation.
    pub const fn has_generation(self) -> bool {
        matches!(self, Self::Pod | Self::Job | Self::Definition | Self::Shoe)
    }

    /// Returns true if an update may omit the resource version.
    pub const fn takes_updates_without_version(self) -> bool {
        !matches!(self, Self::Definition | Self::Shoe)
    }
}

/// The namespace and name of an object. Cluster-scoped kinds have an empty namespace.
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

    pub fn target(&self, api_version: ApiVersion) -> Target {
        Target {
            kind: self.kind.info(api_version),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.clone()),
            name: self.name.clone(),
        }
    }
}

/// Converts an object that was read in a version to its representation in the model.
pub fn known(kind: Kind, api_version: ApiVersion, object: &Object) -> (Key, ModelObject) {
    let (value, info) = (object.value(), kind.info(api_version));
    let key = Key::new(kind, object.namespace().unwrap_or_default(), object.name());
    let model_object = ModelObject::read(kind, &value);
    assert_eq!(
        model_object.version,
        object.revision(),
        "bytes of another version"
    );
    assert_eq!(value["apiVersion"], info.api_version(), "{key:?}");
    assert_eq!(value["kind"], *info.gvk.kind, "{key:?}");
    (key, model_object)
}
