//! Changes of Nodes by nodes: a node may change only its own Node, except for fields with which it
//! could attract pods that are not intended for it.

use std::collections::BTreeSet;

use longshore_engine::Error;
use serde_json::Value;

use super::{Change, compare};
use crate::webhooks::attributes::Operation;

/// The reserved domain of labels that nodes cannot set.
const RESTRICTED: &str = "node-restriction.kubernetes.io";
/// The domains of Kubernetes, whose labels nodes cannot set, with the exceptions below.
const KUBERNETES: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// The domains of Kubernetes whose labels nodes can set.
const OPEN_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// The labels of Kubernetes that nodes can set.
const OPEN_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

pub(super) fn check(node: &str, change: &Change<'_>) -> Result<(), Error> {
    if change.name != node {
        return Err(change.forbidden(format!(
            "node {node:?} is not allowed to modify node {:?}",
            change.name
        )));
    }
    match change.operation {
        Operation::Create => check_new(node, change),
        Operation::Update => check_update(node, change),
        Operation::Delete | Operation::Connect => Ok(()),
    }
}

fn check_new(node: &str, change: &Change<'_>) -> Result<(), Error> {
    if !change.object["spec"]["configSource"].is_null() {
        return Err(change.forbidden(format!(
            "node {node:?} is not allowed to create pods with a non-nil configSource"
        )));
    }
    match restricted(&Value::Null, labels(change.object)) {
        None => Ok(()),
        Some(labels) => Err(change.forbidden(format!(
            "node {node:?} is not allowed to set the following labels: {labels}"
        ))),
    }
}

fn check_update(node: &str, change: &Change<'_>) -> Result<(), Error> {
    let (old, new) = (change.old_object, change.object);
    let forbidden =
        |what: &str| Err(change.forbidden(format!("node {node:?} is not allowed to {what}")));
    let source = |object: &Value| object["spec"]["configSource"].clone();
    if !source(new).is_null() && !compare::is_same(&source(old), &source(new)) {
        return forbidden("update configSource to a new non-nil configSource");
    }
    if !compare::is_same(&old["spec"]["taints"], &new["spec"]["taints"]) {
        return forbidden("modify taints");
    }
    let owners = |object: &Value| object["metadata"]["ownerReferences"].clone();
    if !compare::is_same(&owners(old), &owners(new)) {
        return forbidden("modify ownerReferences");
    }
    match restricted(labels(old), labels(new)) {
        None => Ok(()),
        Some(labels) => Err(change.forbidden(format!("is not allowed to modify labels: {labels}"))),
    }
}

fn labels(object: &Value) -> &Value {
    &object["metadata"]["labels"]
}

/// The restricted labels among the labels that differ, separated by commas; `None` if none is
/// restricted.
fn restricted(old: &Value, new: &Value) -> Option<String> {
    let keys = |labels: &Value| -> BTreeSet<String> {
        let labels = labels.as_object().into_iter().flatten();
        labels.map(|(key, _)| key.clone()).collect()
    };
    let all = &keys(old) | &keys(new);
    let changed = all.into_iter().filter(|key| old.get(key) != new.get(key));
    let restricted: Vec<String> = changed.filter(|key| is_restricted(key)).collect();
    (!restricted.is_empty()).then(|| restricted.join(", "))
}

/// Returns true if nodes cannot set a label.
fn is_restricted(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |parent: &str| {
        let rest = domain.strip_suffix(parent);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_open = OPEN_LABELS.contains(&label) || OPEN_DOMAINS.into_iter().any(is_in);
    is_in(RESTRICTED) || (KUBERNETES.into_iter().any(is_in) && !is_open)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_of_kubernetes_are_restricted_except_those_of_kubelets() {
        for (label, expected) in [
            ("role", false),
            ("example.com/role", false),
            ("kubernetes.io/hostname", false),
            ("topology.kubernetes.io/zone", false),
            ("beta.kubernetes.io/os", false),
            ("node.kubernetes.io/anything", false),
            ("kubelet.kubernetes.io/anything", false),
            ("team.node.kubernetes.io/anything", false),
            ("notkubernetes.io/role", false),
            ("kubernetes.io/role", true),
            ("topology.kubernetes.io/rack", true),
            ("beta.kubernetes.io/other", true),
            ("x.k8s.io/y", true),
            ("k8s.io/y", true),
            ("node-role.kubernetes.io/control-plane", true),
            ("node-restriction.kubernetes.io/tier", true),
            ("team.node-restriction.kubernetes.io/tier", true),
            ("xnode.kubernetes.io/y", true),
            ("a.b/c/kubernetes.io", false),
        ] {
            assert_eq!(is_restricted(label), expected, "{label}");
        }
    }

    #[test]
    fn only_changed_labels_count() {
        let old = json!({"kubernetes.io/a": "1", "kubernetes.io/b": "1", "c": "1"});
        assert_eq!(restricted(&old, &old), None);
        let new = json!({"kubernetes.io/a": "2", "c": "2", "k8s.io/d": ""});
        let found = restricted(&old, &new);
        let expected = "k8s.io/d, kubernetes.io/a, kubernetes.io/b";
        assert_eq!(found.as_deref(), Some(expected));
    }
}
