//! The rules of the node authorizer, and the relations that decide.

#![allow(clippy::unwrap_used)]

use http::Method;
use longshore_builtin::PodReferences;
use proptest::prelude::*;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    graph::Graph,
    pod::PodUse,
    rules::{Related, Verdict, decide, needs_graph},
    target::{Target, Used},
    volume::Volume,
};
use crate::{authorization::Attributes, query::Query};

/// The decision of the node authorizer about a request of the node `n`. Objects with the name
/// `mine` in the namespace `a`, or in no namespace, are related to the node.
fn ask(method: &str, path: &str) -> Verdict {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let query = Query::parse(Some(query)).unwrap();
    let request = Attributes::of_request(&method.parse::<Method>().unwrap(), path, &query);
    decide("n", &request, |_, namespace, name| {
        matches!(namespace, "" | "a") && name == "mine"
    })
}

fn reason(text: &'static str) -> Verdict {
    Verdict::NoOpinion(text.into())
}

#[test]
fn allowed_requests() {
    for (method, path) in [
        ("GET", "/api/v1/namespaces/a/secrets/mine"),
        (
            "GET",
            "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dmine",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/configmaps?watch=1&fieldSelector=metadata.name%3Dmine",
        ),
        ("GET", "/api/v1/namespaces/a/configmaps/mine"),
        ("GET", "/api/v1/namespaces/a/persistentvolumeclaims/mine"),
        (
            "PATCH",
            "/api/v1/namespaces/a/persistentvolumeclaims/mine/status",
        ),
        (
            "PUT",
            "/api/v1/namespaces/a/persistentvolumeclaims/mine/status",
        ),
        ("GET", "/api/v1/persistentvolumes/mine"),
        ("GET", "/apis/storage.k8s.io/v1/volumeattachments/mine"),
        (
            "GET",
            "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/mine",
        ),
        ("GET", "/api/v1/namespaces/a/serviceaccounts/mine"),
        ("POST", "/api/v1/namespaces/a/serviceaccounts/mine/token"),
        (
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        ),
        (
            "GET",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
        ),
        (
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
        ),
        (
            "DELETE",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
        ),
        ("POST", "/apis/storage.k8s.io/v1/csinodes"),
        ("PATCH", "/apis/storage.k8s.io/v1/csinodes/n"),
        ("POST", "/apis/resource.k8s.io/v1/resourceslices"),
        ("DELETE", "/apis/resource.k8s.io/v1/resourceslices/mine"),
        (
            "GET",
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn",
        ),
        (
            "DELETE",
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn",
        ),
        ("POST", "/api/v1/nodes"),
        ("GET", "/api/v1/nodes/n"),
        (
            "GET",
            "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Dn",
        ),
        ("PATCH", "/api/v1/nodes/other"),
        ("PUT", "/api/v1/nodes/n/status"),
        (
            "GET",
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dn&watch=1",
        ),
        (
            "GET",
            "/api/v1/pods?fieldSelector=status.phase!%3DFailed,spec.nodeName%3D%3Dn",
        ),
        ("GET", "/api/v1/namespaces/a/pods/mine"),
        (
            "GET",
            "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dmine",
        ),
        ("POST", "/api/v1/namespaces/a/pods"),
        ("DELETE", "/api/v1/namespaces/a/pods/other"),
        ("PATCH", "/api/v1/namespaces/a/pods/other/status"),
        ("POST", "/api/v1/namespaces/a/pods/other/eviction"),
        (
            "POST",
            "/apis/certificates.k8s.io/v1/namespaces/a/podcertificaterequests",
        ),
        (
            "GET",
            "/apis/certificates.k8s.io/v1/namespaces/a/podcertificaterequests/mine",
        ),
        (
            "GET",
            "/apis/certificates.k8s.io/v1/podcertificaterequests?watch=1&fieldSelector=spec.nodeName%3Dn",
        ),
        // By the rules of the role `system:node`.
        ("GET", "/api/v1/services?watch=1"),
        ("GET", "/apis/node.k8s.io/v1/runtimeclasses"),
        ("GET", "/apis/storage.k8s.io/v1/csidrivers?watch=1"),
        (
            "POST",
            "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        ),
        (
            "GET",
            "/apis/certificates.k8s.io/v1/certificatesigningrequests/any",
        ),
        ("GET", "/apis/certificates.k8s.io/v1/clustertrustbundles"),
        ("POST", "/api/v1/namespaces/a/events"),
        ("PATCH", "/apis/events.k8s.io/v1/namespaces/a/events/e"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
    ] {
        assert_eq!(ask(method, path), Verdict::Allowed, "{method} {path}");
    }
}

#[test]
fn requests_without_permission() {
    const UNRELATED: &str = "no relationship found between node 'n' and this object";
    const PODS: &str = "can only list/watch pods with spec.nodeName field selector";
    const SLICES: &str =
        "can only list/watch/deletecollection resourceslices with nodeName field selector";
    const LEASE: &str = "can only access node lease with the same name as the requesting node";
    for (method, path, why) in [
        ("GET", "/api/v1/namespaces/a/secrets/other", UNRELATED),
        ("GET", "/api/v1/namespaces/b/secrets/mine", UNRELATED),
        (
            "GET",
            "/api/v1/namespaces/a/secrets",
            "No Object name found",
        ),
        (
            "GET",
            "/api/v1/secrets",
            "can only read namespaced object of this type",
        ),
        (
            "GET",
            "/api/v1/secrets?fieldSelector=metadata.name%3Dmine",
            "can only read namespaced object of this type",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/a/secrets/mine",
            "can only read resources of this type",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/configmaps/mine/status",
            "cannot read subresource",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/persistentvolumeclaims?fieldSelector=metadata.name%3Dmine",
            "can only get individual resources of this type",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/persistentvolumeclaims/mine/status",
            "can only get/update/patch this type",
        ),
        (
            "GET",
            "/api/v1/persistentvolumes/mine/status",
            "cannot get subresource",
        ),
        (
            "PUT",
            "/api/v1/persistentvolumes/mine",
            "can only get individual resources of this type",
        ),
        ("GET", "/api/v1/persistentvolumes/other", UNRELATED),
        (
            "GET",
            "/apis/storage.k8s.io/v1/volumeattachments",
            "can only get individual resources of this type",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/serviceaccounts/other",
            UNRELATED,
        ),
        (
            "GET",
            "/api/v1/namespaces/a/serviceaccounts",
            "can only create tokens for individual service accounts",
        ),
        (
            "POST",
            "/api/v1/namespaces/a/serviceaccounts",
            "can only create tokens for individual service accounts",
        ),
        (
            "POST",
            "/api/v1/namespaces/a/serviceaccounts/other/token",
            UNRELATED,
        ),
        (
            "POST",
            "/api/v1/namespaces/a/serviceaccounts/mine/x",
            "can only create token subresource of serviceaccount",
        ),
        (
            "GET",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
            "can only get, create, update, patch, or delete a node lease",
        ),
        (
            "GET",
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/n",
            "can only access leases in the \"kube-node-lease\" system namespace",
        ),
        (
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/other",
            LEASE,
        ),
        (
            "GET",
            "/apis/storage.k8s.io/v1/csinodes",
            "can only get, create, update, patch, or delete a CSINode",
        ),
        (
            "GET",
            "/apis/storage.k8s.io/v1/csinodes/other",
            "can only access CSINode with the same name as the requesting node",
        ),
        (
            "PUT",
            "/apis/storage.k8s.io/v1/csinodes/n/status",
            "CSINode status access requires CSIVolumeHealth feature",
        ),
        (
            "GET",
            "/apis/storage.k8s.io/v1/csinodes/n/x",
            "cannot authorize CSINode subresources",
        ),
        ("GET", "/apis/resource.k8s.io/v1/resourceslices", SLICES),
        (
            "GET",
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dother",
            SLICES,
        ),
        (
            "DELETE",
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName!%3Dn",
            SLICES,
        ),
        (
            "PUT",
            "/apis/resource.k8s.io/v1/resourceslices/other",
            UNRELATED,
        ),
        (
            "GET",
            "/apis/resource.k8s.io/v1/resourceslices/mine/status",
            "cannot authorize ResourceSlice subresources",
        ),
        (
            "GET",
            "/api/v1/nodes",
            "node 'n' cannot read all nodes, only its own Node object",
        ),
        (
            "GET",
            "/api/v1/nodes/other",
            "node 'n' cannot read 'other', only its own Node object",
        ),
        ("DELETE", "/api/v1/nodes/n", ""),
        ("GET", "/api/v1/nodes/n/status", ""),
        ("GET", "/api/v1/pods", PODS),
        (
            "GET",
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dother",
            PODS,
        ),
        // The path does not support selectors.
        (
            "GET",
            "/api/v1/watch/pods?fieldSelector=spec.nodeName%3Dn",
            PODS,
        ),
        ("GET", "/api/v1/namespaces/a/pods/other", UNRELATED),
        (
            "DELETE",
            "/api/v1/namespaces/a/pods?fieldSelector=spec.nodeName%3Dn",
            "",
        ),
        ("PUT", "/api/v1/namespaces/a/pods/mine", ""),
        ("GET", "/api/v1/namespaces/a/pods/mine/log", ""),
        ("POST", "/api/v1/namespaces/a/pods/mine/binding", ""),
        (
            "DELETE",
            "/apis/certificates.k8s.io/v1/namespaces/a/podcertificaterequests/mine",
            "nodes may not delete podcertificaterequests",
        ),
        (
            "PUT",
            "/apis/certificates.k8s.io/v1/namespaces/a/podcertificaterequests/mine/status",
            "nodes may not access the status subresource of PodCertificateRequests",
        ),
        (
            "GET",
            "/apis/certificates.k8s.io/v1/podcertificaterequests",
            "can only list/watch podcertificaterequests with nodeName field selector",
        ),
        (
            "GET",
            "/apis/certificates.k8s.io/v1/namespaces/a/podcertificaterequests/other",
            UNRELATED,
        ),
        ("GET", "/apis/apps/v1/deployments", ""),
        ("POST", "/api/v1/namespaces/a/services", ""),
        ("GET", "/metrics", ""),
    ] {
        assert_eq!(ask(method, path), reason(why), "{method} {path}");
    }
}

#[test]
fn an_unknown_node_may_do_nothing() {
    let request = Attributes {
        verb: "get".to_owned(),
        resource: "services".to_owned(),
        ..Attributes::default()
    };
    let verdict = decide("", &request, |_, _, _| true);
    assert_eq!(verdict, reason("unknown node for user \"system:node:\""));
}

/// `needs_graph` is true for all requests whose decision depends on pods.
#[test]
fn only_announced_questions_need_pods() {
    for (resource, related) in [
        ("secrets", Related::Secret),
        ("persistentvolumes", Related::Volume),
        ("pods", Related::Pod),
    ] {
        let request = Attributes {
            verb: "get".to_owned(),
            resource: resource.to_owned(),
            namespace: "a".to_owned(),
            name: "mine".to_owned(),
            ..Attributes::default()
        };
        let asked = std::cell::Cell::new(None);
        decide("n", &request, |related, _, _| {
            asked.set(Some(related));
            false
        });
        assert_eq!(asked.get(), Some(related));
        assert_eq!(needs_graph(&request), related != Related::Pod, "{resource}");
    }
}

fn used(pod: &Value) -> Option<PodUse> {
    let facts = PodReferences::deserialize(pod).unwrap();
    PodUse::of(&facts, "a", "p")
}

fn targets(kind: Used, names: &[&str]) -> Vec<Target> {
    let names = names.iter();
    names.map(|name| Target::new(kind, "a", name)).collect()
}

#[test]
fn references_of_pods() {
    let secrets = json!({
        "imagePullSecrets": [{"name": "s1"}, {}],
        "initContainers": [{"envFrom": [{"secretRef": {"name": "s2"}}, {"prefix": "x"}]}],
        "containers": [{"env": [
            {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "k"}}},
            {"name": "Y", "value": "v"},
        ]}],
        "ephemeralContainers": [{"env": [
            {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s4"}}},
        ]}],
        "volumes": [
            {"name": "v1", "secret": {"secretName": "s5"}},
            {"name": "v2", "projected": {"sources": [{"secret": {"name": "s6"}}, {"downwardAPI": {}}]}},
            {"name": "v3", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s7"}}},
            {"name": "v4", "azureFile": {"secretName": "s8"}},
            {"name": "v5", "cephfs": {"secretRef": {"name": "s9"}}},
            {"name": "v6", "iscsi": {"secretRef": {"name": "s1"}}},
            {"name": "v7", "rbd": {}},
            {"name": "v8", "emptyDir": {}},
        ],
    });
    let config_maps = json!({
        "containers": [
            {"envFrom": [{"configMapRef": {"name": "c1"}}]},
            {"env": [{"valueFrom": {"configMapKeyRef": {"name": "c2"}}}]},
        ],
        "volumes": [
            {"name": "v1", "configMap": {"name": "c3"}},
            {"name": "v2", "projected": {"sources": [{"configMap": {"name": "c4"}}]}},
        ],
    });
    let claims = json!({"volumes": [
        {"name": "v1", "persistentVolumeClaim": {"claimName": "k1"}},
        {"name": "v2", "ephemeral": {"volumeClaimTemplate": {}}},
    ]});
    for (spec, kind, names) in [
        (
            secrets,
            Used::Secret,
            &["s1", "s2", "s3", "s4", "s5", "s7", "s8", "s9", "s6"][..],
        ),
        (config_maps, Used::ConfigMap, &["c1", "c2", "c3", "c4"][..]),
        (claims, Used::Claim, &["k1", "p-v2"][..]),
        (
            json!({"serviceAccountName": "x"}),
            Used::ServiceAccount,
            &["x"][..],
        ),
    ] {
        let mut pod = json!({"spec": spec});
        assert_eq!(used(&pod), None, "it is not bound to a node");
        pod["spec"]["nodeName"] = "n".into();
        let found = used(&pod).unwrap();
        assert_eq!((&*found.node, found.targets), ("n", targets(kind, names)));
        // A mirror pod does not give its node permissions.
        pod["metadata"] = json!({"annotations": {"kubernetes.io/config.mirror": "x"}});
        assert_eq!(used(&pod).unwrap().targets, []);
    }
}

#[test]
fn resource_claims_of_pods() {
    let mut pod = json!({
        "spec": {"nodeName": "n", "resourceClaims": [
            {"name": "own", "resourceClaimName": "r1"},
            {"name": "made", "resourceClaimTemplateName": "t"},
            {"name": "unmade", "resourceClaimTemplateName": "t"},
            {"name": "needless", "resourceClaimTemplateName": "t"},
        ]},
    });
    let found = used(&pod).unwrap().targets;
    assert_eq!(found, targets(Used::ResourceClaim, &["r1"]));
    pod["status"] = json!({
        "resourceClaimStatuses": [
            {"name": "made", "resourceClaimName": "r2"},
            {"name": "needless"},
        ],
        "extendedResourceClaimStatus": {"resourceClaimName": "r3", "requestMappings": []},
    });
    let found = used(&pod).unwrap().targets;
    assert_eq!(found, targets(Used::ResourceClaim, &["r1", "r2", "r3"]));
}

#[test]
fn references_of_volumes() {
    let read = |source: Value| {
        let mut spec = source;
        spec["claimRef"] = json!({"namespace": "a", "name": "k"});
        let volume = json!({"metadata": {"name": "v"}, "spec": spec});
        Volume::read(volume.to_string().as_bytes()).unwrap()
    };
    let secret = |namespace: &str, name: &str| Target::new(Used::Secret, namespace, name);
    for (source, expected) in [
        (json!({"hostPath": {"path": "/x"}}), vec![]),
        (
            json!({"rbd": {"secretRef": {"name": "s"}}}),
            vec![secret("a", "s")],
        ),
        (
            json!({"cephfs": {"secretRef": {"name": "s", "namespace": "b"}}}),
            vec![secret("b", "s")],
        ),
        (
            json!({"azureFile": {"secretName": "s"}}),
            vec![secret("a", "s")],
        ),
        (
            json!({"azureFile": {"secretName": "s", "secretNamespace": "b"}}),
            vec![secret("b", "s")],
        ),
        // Only the Secrets that a node needs.
        (
            json!({"csi": {
                "controllerPublishSecretRef": {"name": "no", "namespace": "b"},
                "controllerExpandSecretRef": {"name": "no", "namespace": "b"},
                "nodePublishSecretRef": {"name": "p", "namespace": "b"},
                "nodeStageSecretRef": {"name": "s", "namespace": "b"},
                "nodeExpandSecretRef": {"name": "e", "namespace": "b"},
            }}),
            vec![secret("b", "p"), secret("b", "s"), secret("b", "e")],
        ),
    ] {
        let volume = read(source);
        assert_eq!(volume.claim, Target::new(Used::Claim, "a", "k"));
        assert_eq!(volume.secrets, expected);
    }
    let unbound = json!({"spec": {"rbd": {"secretRef": {"name": "s"}}}});
    assert_eq!(Volume::read(unbound.to_string().as_bytes()), None);
    assert_eq!(Volume::read(b"{}"), None);
}

#[test]
fn secrets_of_volumes_are_used_through_claims() {
    let mut graph = Graph::default();
    let volume = |secret: &str| Volume {
        claim: Target::new(Used::Claim, "a", "k"),
        secrets: targets(Used::Secret, &[secret]),
    };
    let pod = |node: &str| PodUse {
        node: node.into(),
        targets: targets(Used::Claim, &["k"]),
    };
    let secret = &targets(Used::Secret, &["s"])[0];
    graph.set_volume("v", Some(volume("s")));
    assert!(!graph.is_used("n", secret));
    graph.set_pod("a", "p", Some(pod("n")));
    assert!(graph.is_used("n", secret) && !graph.is_used("m", secret));
    graph.set_volume("v", Some(volume("t")));
    assert!(!graph.is_used("n", secret));
    graph.set_volume("v", Some(volume("s")));
    graph.set_pod("a", "p", Some(pod("m")));
    assert!(!graph.is_used("n", secret) && graph.is_used("m", secret));
    graph.set_volume("v", None);
    graph.set_pod("a", "p", None);
    assert!(graph.is_empty());
}

proptest! {
    /// After any changes, a node uses the objects that its pods use. Deleted pods leave no entries.
    #[test]
    fn relations_follow_the_pods(
        changes in prop::collection::vec(
            (0..4_usize, prop::option::of((0..3_usize, prop::collection::btree_set(0..4_usize, 0..3)))),
            0..40,
        ),
    ) {
        let mut graph = Graph::default();
        let mut model = std::collections::BTreeMap::new();
        let name = |index: usize| index.to_string();
        let target = |index: usize| Target::new(Used::Secret, "a", &name(index));
        for (pod, state) in changes {
            let made = state.as_ref().map(|(node, secrets)| PodUse {
                node: name(*node).into(),
                targets: secrets.iter().map(|index| target(*index)).collect(),
            });
            graph.set_pod("a", &name(pod), made);
            match state {
                Some(state) => drop(model.insert(pod, state)),
                None => drop(model.remove(&pod)),
            }
            for node in 0..3 {
                for secret in 0..4 {
                    let expected = model
                        .values()
                        .any(|(own, secrets)| *own == node && secrets.contains(&secret));
                    let found = graph.is_used(&name(node), &target(secret));
                    prop_assert_eq!(found, expected, "node {}, secret {}", node, secret);
                }
            }
        }
        for pod in 0..4 {
            graph.set_pod("a", &name(pod), None);
        }
        prop_assert!(graph.is_empty());
    }
}
