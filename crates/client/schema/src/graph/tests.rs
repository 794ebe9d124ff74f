//! Types at paths of Kubernetes kinds.

#![allow(clippy::unwrap_used)]

use longshore_model::Gvk;

use super::*;
use crate::{Strategy, registry};

fn at(api_version: &str, kind: &str, path: &str) -> TypeRef {
    let root = registry()
        .root(&Gvk::from_api_version(api_version, kind))
        .unwrap();
    path.split('.').fold(root, |at, name| match name {
        "*" => at.items().unwrap(),
        name => at.field(name).unwrap_or_else(|| panic!("{path}: {name}")),
    })
}

#[test]
fn shapes() {
    let shapes = [
        ("metadata", Shape::Object),
        ("metadata.labels", Shape::Map),
        ("metadata.labels.any", Shape::String),
        ("metadata.creationTimestamp", Shape::Time),
        ("metadata.managedFields.*.fieldsV1", Shape::Any),
        ("spec.containers", Shape::List),
        ("spec.containers.*.resources.limits.cpu", Shape::Quantity),
        ("spec.containers.*.ports.*.containerPort", Shape::Integer),
        (
            "spec.containers.*.livenessProbe.httpGet.port",
            Shape::IntOrString,
        ),
        ("spec.hostNetwork", Shape::Boolean),
    ];
    for (path, shape) in shapes {
        assert_eq!(at("v1", "Pod", path).shape(), shape, "{path}");
    }
    assert_eq!(at("v1", "Secret", "data.key").shape(), Shape::Bytes);
    assert_eq!(
        at("coordination.k8s.io/v1", "Lease", "spec.renewTime").shape(),
        Shape::MicroTime
    );
    assert_eq!(at("v1", "Pod", "spec").field("nonsense"), None);
}

#[test]
fn patch_rules() {
    let rules = [
        ("spec.containers", Some("name"), Strategy::Merge),
        ("spec.initContainers", Some("name"), Strategy::Merge),
        (
            "spec.ephemeralContainers.*.env",
            Some("name"),
            Strategy::Merge,
        ),
        ("spec.volumes", Some("name"), Strategy::MergeRetainKeys),
        ("spec.containers.*.env", Some("name"), Strategy::Merge),
        ("spec.containers.*.envFrom", None, Strategy::Replace),
        ("spec.containers.*.command", None, Strategy::Replace),
        (
            "spec.containers.*.ports",
            Some("containerPort"),
            Strategy::Merge,
        ),
        (
            "spec.containers.*.volumeMounts",
            Some("mountPath"),
            Strategy::Merge,
        ),
        (
            "spec.containers.*.volumeDevices",
            Some("devicePath"),
            Strategy::Merge,
        ),
        ("spec.hostAliases", Some("ip"), Strategy::Merge),
        ("spec.imagePullSecrets", Some("name"), Strategy::Merge),
        ("spec.tolerations", None, Strategy::Replace),
        (
            "spec.topologySpreadConstraints",
            Some("topologyKey"),
            Strategy::Merge,
        ),
        ("status.conditions", Some("type"), Strategy::Merge),
        ("status.podIPs", Some("ip"), Strategy::Merge),
        ("metadata.ownerReferences", Some("uid"), Strategy::Merge),
        ("metadata.finalizers", None, Strategy::Merge),
    ];
    for (path, merge_key, strategy) in rules {
        assert_eq!(
            at("v1", "Pod", path).patch(),
            PatchRule {
                merge_key,
                strategy
            },
            "{path}"
        );
    }
    assert_eq!(
        at("v1", "Service", "spec.ports").patch().merge_key,
        Some("port")
    );
    assert_eq!(
        at("v1", "Node", "status.addresses").patch().merge_key,
        Some("type")
    );
    assert_eq!(
        at("apps/v1", "Deployment", "spec.strategy")
            .patch()
            .strategy,
        Strategy::RetainKeys
    );
}

#[test]
fn apply_keys() {
    let ports = at("v1", "Pod", "spec.containers.*.ports");
    assert_eq!(ports.list_map_keys(), ["containerPort", "protocol"]);
    assert_eq!(ports.list_type(), ListType::Map);
    assert_eq!(
        at("v1", "Service", "spec.ports").list_map_keys(),
        ["port", "protocol"]
    );
    assert_eq!(
        at("v1", "Pod", "spec.topologySpreadConstraints").list_map_keys(),
        ["topologyKey", "whenUnsatisfiable"]
    );
    assert_eq!(
        at("v1", "Pod", "metadata.finalizers").list_type(),
        ListType::Set
    );
    assert_eq!(
        at("v1", "Pod", "spec.tolerations").list_type(),
        ListType::Atomic
    );
    assert!(at("batch/v1", "Job", "spec.selector").is_atomic());
    assert!(!at("batch/v1", "Job", "spec").is_atomic());
}
