//! Checks that the objects that pods refer to exist.

use std::collections::{BTreeMap, BTreeSet};

use longshore_diagnosis::explain::Cause;
use longshore_model::facts::{Container, PodSpec};
use serde_json::Value;

use super::{Finding, Report};

/// The kind of a referenced object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Secret,
    /// An image pull secret. The image may be available without it.
    PullSecret,
    ConfigMap,
    Claim,
    ServiceAccount,
    PriorityClass,
    RuntimeClass,
}

impl What {
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Secret | Self::PullSecret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Claim => "PersistentVolumeClaim",
            Self::ServiceAccount => "ServiceAccount",
            Self::PriorityClass => "PriorityClass",
            Self::RuntimeClass => "RuntimeClass",
        }
    }

    /// The API path of an object.
    pub(super) fn path(self, namespace: &str, name: &str) -> String {
        let core = |plural| format!("/api/v1/namespaces/{namespace}/{plural}/{name}");
        match self {
            Self::Secret | Self::PullSecret => core("secrets"),
            Self::ConfigMap => core("configmaps"),
            Self::Claim => core("persistentvolumeclaims"),
            Self::ServiceAccount => core("serviceaccounts"),
            Self::PriorityClass => format!("/apis/scheduling.k8s.io/v1/priorityclasses/{name}"),
            Self::RuntimeClass => format!("/apis/node.k8s.io/v1/runtimeclasses/{name}"),
        }
    }
}

/// An object that pods refer to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    /// The kind of the object.
    pub(crate) what: What,
    /// The name of the object.
    pub(crate) name: String,
    /// The referenced keys.
    pub(crate) keys: BTreeSet<String>,
}

/// The state of a referenced object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// The object cannot be read, or the server does not have its kind.
    Unseen,
    /// The object does not exist.
    Missing,
    /// The object exists, with these keys.
    There(BTreeSet<String>),
}

/// The ConfigMap with the certificates of the cluster, in each namespace.
const ROOT_CA: &str = "kube-root-ca.crt";

/// The objects that a pod requires.
pub(super) fn of(spec: &PodSpec) -> Vec<Reference> {
    let mut found: BTreeMap<(What, String), BTreeSet<String>> = BTreeMap::new();
    let mut add = |what: What, name: &str, keys: Vec<String>| {
        // The cluster itself creates this ConfigMap, perhaps shortly after the namespace.
        let is_own = what == What::ConfigMap && name == ROOT_CA;
        if !name.is_empty() && !is_own {
            let known = found.entry((what, name.to_owned())).or_default();
            known.extend(keys);
        }
    };
    let named = |source: &Value, key: &str, name: &str| {
        let source = &source[key];
        let wanted = source["optional"].as_bool() != Some(true);
        let name = source[name].as_str().filter(|_| wanted)?;
        let items = source["items"].as_array().into_iter().flatten();
        let items = items.filter_map(|item| item["key"].as_str());
        let own = source["key"].as_str();
        let keys = items.chain(own).map(str::to_owned).collect::<Vec<_>>();
        Some((name.to_owned(), keys))
    };
    for volume in &spec.volumes {
        let projected = volume["projected"]["sources"].as_array();
        let sources = projected.into_iter().flatten();
        let places = sources
            .map(|source| (source, "name"))
            .chain([(volume, "secretName")]);
        for (source, name) in places {
            if let Some((name, keys)) = named(source, "secret", name) {
                add(What::Secret, &name, keys);
            }
            if let Some((name, keys)) = named(source, "configMap", "name") {
                add(What::ConfigMap, &name, keys);
            }
        }
        if let Some((name, _)) = named(volume, "persistentVolumeClaim", "claimName") {
            add(What::Claim, &name, Vec::new());
        }
    }
    let all: Vec<&Container> = spec
        .containers
        .iter()
        .chain(&spec.init_containers)
        .collect();
    for container in all {
        let variables = container.env.iter().map(|variable| &variable["valueFrom"]);
        for source in variables {
            if let Some((name, keys)) = named(source, "secretKeyRef", "name") {
                add(What::Secret, &name, keys);
            }
            if let Some((name, keys)) = named(source, "configMapKeyRef", "name") {
                add(What::ConfigMap, &name, keys);
            }
        }
        for source in &container.env_from {
            if let Some((name, keys)) = named(source, "secretRef", "name") {
                add(What::Secret, &name, keys);
            }
            if let Some((name, keys)) = named(source, "configMapRef", "name") {
                add(What::ConfigMap, &name, keys);
            }
        }
    }
    for secret in &spec.image_pull_secrets {
        add(What::PullSecret, &secret.name, Vec::new());
    }
    add(What::ServiceAccount, &spec.service_account_name, Vec::new());
    add(What::PriorityClass, &spec.priority_class_name, Vec::new());
    add(What::RuntimeClass, &spec.runtime_class_name, Vec::new());
    let of_found = |((what, name), keys)| Reference { what, name, keys };
    found.into_iter().map(of_found).collect()
}

/// Reports missing objects.
pub(super) fn check(references: &BTreeMap<Reference, Found>, report: &mut Report) {
    for (reference, found) in references {
        let (kind, name) = (reference.what.kind(), &reference.name);
        match found {
            Found::Unseen => {}
            Found::Missing => {
                let (cause, remedy) = missing(reference.what, name);
                let problem = format!("the {kind} {name:?} is missing, which the tasks refer to");
                let finding = Finding::new(cause, problem, remedy);
                if reference.what == What::PullSecret {
                    report.warnings.push(finding);
                } else {
                    report.refusals.push(finding);
                }
            }
            Found::There(keys) => {
                for key in reference.keys.difference(keys) {
                    report.refusals.push(Finding::new(
                        Cause::MissingKey,
                        format!("the {kind} {name:?} has no key {key:?}, which the tasks refer to"),
                        format!(
                            "add the key {key:?} to the {kind}, or correct the name of the key"
                        ),
                    ));
                }
            }
        }
    }
}

fn missing(what: What, name: &str) -> (Cause, String) {
    let create = |verb: &str| {
        format!("create it with `kubectl create {verb} {name} …`, or correct its name")
    };
    match what {
        What::Secret => (Cause::MissingSecret, create("secret generic")),
        What::PullSecret => (Cause::MissingSecret, create("secret docker-registry")),
        What::ConfigMap => (Cause::MissingConfigMap, create("configmap")),
        What::Claim => (
            Cause::Volume,
            "create the claim, or correct its name".to_owned(),
        ),
        What::ServiceAccount => (
            Cause::MissingServiceAccount,
            format!(
                "create it with `kubectl create serviceaccount {name}`, or correct `service_account`"
            ),
        ),
        What::PriorityClass => (
            Cause::MissingPriorityClass,
            "`kubectl get priorityclasses` lists the existing ones".to_owned(),
        ),
        What::RuntimeClass => (
            Cause::MissingRuntimeClass,
            "`kubectl get runtimeclasses` lists the existing ones".to_owned(),
        ),
    }
}
