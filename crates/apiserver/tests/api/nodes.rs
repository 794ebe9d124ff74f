//! What nodes may do: the node authorizer and the admission plugin NodeRestriction. The tests
//! impersonate the nodes `n1` and `n2`. The messages are those of Kubernetes 1.37.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_apiserver::AuthorizationMode;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::common::{Answer, CONFIG_MAPS, PODS, Server};

const NODES: &str = "/api/v1/nodes";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";
const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const POD_REQUESTS: &str = "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const MERGE: &str = "application/merge-patch+json";

/// A node that sends requests.
struct Node<'a>(&'a Server, &'a str);

impl Node<'_> {
    async fn send(&self, method: &str, path: &str, media_type: &str, body: &Value) -> Answer {
        let user = format!("system:node:{}", self.1);
        let headers = [
            ("impersonate-user", user.as_str()),
            ("impersonate-group", "system:nodes"),
            ("content-type", media_type),
        ];
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        self.0.call(method, path, &headers, body).await
    }

    async fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, "application/json", body).await
    }

    async fn get(&self, path: &str) -> u16 {
        self.call("GET", path, &Value::Null).await.code
    }

    async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, MERGE, body).await
    }
}

/// Checks the code, and the end of the message of a refused request.
#[track_caller]
fn check(answer: &Answer, (code, end): (u16, &str), what: &dyn std::fmt::Display) {
    assert_eq!(answer.code, code, "{what}: {}", answer.text());
    if code >= 400 {
        let message = answer.message();
        assert!(message.ends_with(end), "{what}: {message}");
    }
}

async fn made(server: &Server, path: &str, object: Value) -> Value {
    let answer = server.post(path, &object).await;
    assert_eq!(answer.code, 201, "{path}: {}", answer.text());
    answer.json()
}

/// A server with the nodes `n1` and `n2`.
async fn server() -> Server {
    let server = Server::new();
    server.api.ensure_default_policy().await.unwrap();
    for name in ["n1", "n2"] {
        let labels = json!({"kubernetes.io/hostname": name});
        let taints = json!([{"key": "k", "effect": "NoSchedule"}]);
        let node =
            json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}});
        made(&server, NODES, node).await;
    }
    server
}

/// A pod; without a node if its name is empty.
fn pod(name: &str, node: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": spec});
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
    }
    if !node.is_empty() {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

async fn named(server: &Server, path: &str, name: &str) {
    made(server, path, json!({"metadata": {"name": name}})).await;
}

fn claim(name: &str, volume: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": volume,
        },
    })
}

fn volume(name: &str, claim: &str, secret: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": claim},
            "csi": {"driver": "driver.example", "volumeHandle": "h", "nodeStageSecretRef": {
                "namespace": "default", "name": secret,
            }},
        },
    })
}

#[tokio::test]
async fn nodes_read_what_their_pods_use() {
    let server = server().await;
    for name in ["used", "of-volume", "other"] {
        named(&server, SECRETS, name).await;
        named(&server, CONFIG_MAPS, name).await;
        named(&server, ACCOUNTS, name).await;
    }
    made(&server, CLAIMS, claim("k1", "v1")).await;
    made(&server, CLAIMS, claim("k2", "v2")).await;
    made(&server, VOLUMES, volume("v1", "k1", "of-volume")).await;
    made(&server, VOLUMES, volume("v2", "k2", "other")).await;
    let spec = json!({
        "serviceAccountName": "used",
        "volumes": [
            {"name": "s", "secret": {"secretName": "used"}},
            {"name": "c", "configMap": {"name": "used"}},
            {"name": "k", "persistentVolumeClaim": {"claimName": "k1"}},
        ],
    });
    let own = [
        format!("{PODS}/p"),
        format!("{PODS}?fieldSelector=metadata.name%3Dp"),
        format!("{SECRETS}/used"),
        format!("{SECRETS}?fieldSelector=metadata.name%3Dused"),
        format!("{SECRETS}/of-volume"),
        format!("{CONFIG_MAPS}/used"),
        format!("{ACCOUNTS}/used"),
        format!("{CLAIMS}/k1"),
        format!("{VOLUMES}/v1"),
    ];
    let (n1, n2) = (Node(&server, "n1"), Node(&server, "n2"));
    let codes = async |node: &Node<'_>, expected: u16, when: &str| {
        for path in &own {
            assert_eq!(node.get(path).await, expected, "{when}: {path}");
        }
    };
    codes(&n1, 403, "there is no pod").await;
    made(&server, PODS, pod("p", "", spec.clone())).await;
    codes(&n1, 403, "the pod has no node").await;
    let target = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}});
    made(&server, &format!("{PODS}/p/binding"), target).await;
    codes(&n1, 200, "the pod is bound").await;
    codes(&n2, 403, "the pod is bound to another node").await;
    for path in [
        format!("{SECRETS}/other"),
        format!("{CONFIG_MAPS}/other"),
        format!("{ACCOUNTS}/other"),
        format!("{CLAIMS}/k2"),
        format!("{VOLUMES}/v2"),
        SECRETS.to_owned(),
        "/api/v1/secrets".to_owned(),
        PODS.to_owned(),
    ] {
        assert_eq!(n1.get(&path).await, 403, "{path}");
    }
    // Ephemeral containers can add references.
    let container =
        json!({"name": "e", "image": "i", "envFrom": [{"secretRef": {"name": "other"}}]});
    let added = json!({"spec": {"ephemeralContainers": [container]}});
    let path = format!("{PODS}/p/ephemeralcontainers");
    let media_type = "application/strategic-merge-patch+json";
    let answer = server.patch(&path, media_type, &added.to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(n1.get(&format!("{SECRETS}/other")).await, 200);

    let now = r#"{"gracePeriodSeconds": 0}"#;
    let answer = server.call("DELETE", &format!("{PODS}/p"), &[], now).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    codes(&n1, 403, "the pod is deleted").await;
    // The same name on another node.
    made(&server, PODS, pod("p", "n2", spec)).await;
    codes(&n1, 403, "another pod").await;
    codes(&n2, 200, "another pod").await;
}

#[tokio::test]
async fn relations_are_read_again_after_a_restore() {
    let server = server().await;
    named(&server, SECRETS, "s").await;
    let empty = server.engine.snapshot();
    let spec = json!({"volumes": [{"name": "s", "secret": {"secretName": "s"}}]});
    made(&server, PODS, pod("p", "n1", spec)).await;
    let full = server.engine.snapshot();
    let n1 = Node(&server, "n1");
    let path = format!("{SECRETS}/s");
    assert_eq!(n1.get(&path).await, 200);
    server.engine.restore(&empty).await.unwrap();
    assert_eq!(n1.get(&path).await, 403);
    server.engine.restore(&full).await.unwrap();
    assert_eq!(n1.get(&path).await, 200);
    server.engine.expire_history().await;
    assert_eq!(n1.get(&path).await, 200);
}

#[tokio::test]
async fn messages_name_the_authorizers() {
    let server = server().await;
    let n1 = Node(&server, "n1");
    let path = format!("{SECRETS}/s");
    let message = n1.call("GET", &path, &Value::Null).await.message();
    let node = "secrets \"s\" is forbidden: User \"system:node:n1\" cannot get resource \"secrets\" in API group \"\" in the namespace \"default\": node: no relationship found between node 'n1' and this object";
    assert_eq!(message, node);
    let group = "rbac.authorization.k8s.io";
    let bindings = format!("/apis/{group}/v1/clusterrolebindings");
    let bound = |name: &str| {
        json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
        })
    };
    made(&server, &bindings, bound("gone")).await;
    let message = n1.call("GET", &path, &Value::Null).await.message();
    let roles = "rbac: RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found";
    assert_eq!(message, format!("{node}\n{roles}"));
    // Nothing is bound to the role of nodes, but it can be.
    let unbound = server.get(&format!("{bindings}/system:node")).await.json();
    assert_eq!(unbound["subjects"], Value::Null);
    assert_eq!(n1.get(SECRETS).await, 403);
    let answer = server
        .call("DELETE", &format!("{bindings}/system:node"), &[], "")
        .await;
    assert_eq!(answer.code, 200);
    made(&server, &bindings, bound("system:node")).await;
    assert_eq!(n1.get(SECRETS).await, 200);
}

#[tokio::test]
async fn users_are_nodes_by_group_and_name() {
    let server = server().await;
    for (headers, code) in [
        (
            &[
                ("impersonate-user", "system:node:n1"),
                ("impersonate-group", "system:nodes"),
            ][..],
            200,
        ),
        (&[("impersonate-user", "system:node:n1")][..], 403),
        (
            &[
                ("impersonate-user", "n1"),
                ("impersonate-group", "system:nodes"),
            ][..],
            403,
        ),
        (
            &[
                ("impersonate-user", "system:node:"),
                ("impersonate-group", "system:nodes"),
            ][..],
            403,
        ),
    ] {
        let answer = server.call("GET", "/api/v1/services", headers, "").await;
        assert_eq!(answer.code, code, "{headers:?}");
    }
}

#[tokio::test]
async fn reviews_evaluate_field_selectors() {
    let server = server().await;
    let n1 = Node(&server, "n1");
    let node = "node: can only list/watch pods with spec.nodeName field selector";
    let requirement = |values: Value| json!({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": values}]});
    let ignored = "spec.resourceAttributes.fieldSelector ignored due to parse error";
    for (selector, expected) in [
        (Value::Null, json!({"allowed": false, "reason": node})),
        (
            json!({"rawSelector": "spec.nodeName=n1"}),
            json!({"allowed": true}),
        ),
        (
            json!({"rawSelector": "spec.nodeName=n2"}),
            json!({"allowed": false, "reason": node}),
        ),
        (requirement(json!(["n1"])), json!({"allowed": true})),
        (
            requirement(json!(["n1", "n2"])),
            json!({"allowed": false, "reason": node, "evaluationError": ignored}),
        ),
    ] {
        let attributes = json!({"verb": "list", "resource": "pods", "fieldSelector": selector});
        let review = json!({"spec": {"resourceAttributes": attributes}});
        let answer = n1.call("POST", REVIEWS, &review).await;
        assert_eq!(answer.json()["status"], expected, "{selector}");
    }
    let attributes = json!({"verb": "list", "resource": "pods", "fieldSelector": {}});
    let review = json!({"spec": {"resourceAttributes": attributes}});
    assert_eq!(n1.call("POST", REVIEWS, &review).await.code, 422);
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let review = json!({"spec": {"namespace": "default"}});
    let status = n1.call("POST", rules, &review).await.json()["status"].clone();
    let problem = "node authorizer does not support user rule resolution";
    assert_eq!(status["incomplete"], true);
    assert_eq!(status["evaluationError"], problem);
}

#[tokio::test]
async fn policies_evaluate_field_selectors() {
    let server = server().await;
    let lists = |selector: &str| {
        format!(
            "authorizer.group('').resource('pods').fieldSelector('{selector}').check('list').allowed()"
        )
    };
    let policy = json!({
        "metadata": {"name": "lists"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"],
                "operations": ["UPDATE"],
            }]},
            "validations": [
                {"expression": lists("spec.nodeName=n1"), "message": "not for n1"},
                {"expression": format!("!{}", lists("spec.nodeName=n2")), "message": "for n2"},
                {"expression": format!("!{}", lists("")), "message": "for all"},
            ],
        },
    });
    let group = "/apis/admissionregistration.k8s.io/v1";
    made(
        &server,
        &format!("{group}/validatingadmissionpolicies"),
        policy,
    )
    .await;
    let binding = json!({
        "metadata": {"name": "lists"},
        "spec": {"policyName": "lists", "validationActions": ["Deny"]},
    });
    let bindings = format!("{group}/validatingadmissionpolicybindings");
    made(&server, &bindings, binding).await;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    for (node, code, end) in [("n1", 200, ""), ("n2", 422, "not for n1")] {
        let answer = Node(&server, node)
            .patch(&format!("{NODES}/{node}"), &label)
            .await;
        check(&answer, (code, end), &node);
    }
    // The restriction comes before the policy.
    let answer = Node(&server, "n2")
        .patch(&format!("{NODES}/n1"), &label)
        .await;
    let end = "node \"n2\" is not allowed to modify node \"n1\"";
    check(&answer, (403, end), &"n2");
}

#[tokio::test]
async fn nodes_change_only_their_own_node() {
    let server = server().await;
    let n1 = Node(&server, "n1");
    let label = |key: &str| {
        let mut labels = json!({});
        labels[key] = "x".into();
        json!({"metadata": {"labels": labels}})
    };
    let other = "node \"n1\" is not allowed to modify node \"n2\"";
    let taints = "node \"n1\" is not allowed to modify taints";
    // Admission has added the second one.
    let same_taints = json!([
        {"key": "k", "effect": "NoSchedule", "value": ""},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    ]);
    for (path, patch, code, end) in [
        ("n1", label("role"), 200, ""),
        ("n1", label("topology.kubernetes.io/zone"), 200, ""),
        ("n1", label("kubelet.kubernetes.io/x"), 200, ""),
        (
            "n1",
            label("node-restriction.kubernetes.io/x"),
            403,
            "is not allowed to modify labels: node-restriction.kubernetes.io/x",
        ),
        (
            "n1",
            label("node-role.kubernetes.io/control-plane"),
            403,
            "is not allowed to modify labels: node-role.kubernetes.io/control-plane",
        ),
        (
            "n1/status",
            label("k8s.io/x"),
            403,
            "is not allowed to modify labels: k8s.io/x",
        ),
        ("n1", json!({"spec": {"unschedulable": true}}), 200, ""),
        ("n1", json!({"spec": {"taints": []}}), 403, taints),
        ("n1/status", json!({"spec": {"taints": null}}), 403, taints),
        ("n1", json!({"spec": {"taints": same_taints}}), 200, ""),
        (
            "n1",
            json!({"metadata": {"ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "1"},
            ]}}),
            403,
            "node \"n1\" is not allowed to modify ownerReferences",
        ),
        (
            "n1",
            json!({"spec": {"configSource": {"configMap": {
                "namespace": "a", "name": "b", "kubeletConfigKey": "c",
            }}}}),
            403,
            "node \"n1\" is not allowed to update configSource to a new non-nil configSource",
        ),
        (
            "n1/status",
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
            200,
            "",
        ),
        ("n2", label("role"), 403, other),
        (
            "n2/status",
            json!({"status": {"phase": "Running"}}),
            403,
            other,
        ),
    ] {
        let answer = n1.patch(&format!("{NODES}/{path}"), &patch).await;
        check(&answer, (code, end), &format_args!("{path} {patch}"));
    }
    // A whole object, as kubelets update the status.
    let mut stored = server.get(&format!("{NODES}/n1")).await.json();
    stored["status"]["phase"] = "Running".into();
    let path = format!("{NODES}/n1/status");
    assert_eq!(n1.call("PUT", &path, &stored).await.code, 200);
    stored["spec"]["taints"][0]["effect"] = "NoExecute".into();
    let mut stale = stored.clone();
    stale["metadata"]["resourceVersion"] = "".into();
    check(&n1.call("PUT", &path, &stale).await, (403, taints), &path);
    check(
        &n1.call("DELETE", &format!("{NODES}/n1"), &Value::Null)
            .await,
        (403, "cluster scope"),
        &"delete",
    );
}

#[tokio::test]
async fn nodes_register_only_themselves() {
    let server = server().await;
    let n3 = Node(&server, "n3");
    let node = |name: &str, labels: Value, spec: Value| json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
    let source = json!({"configSource": {"configMap": {
        "namespace": "a", "name": "b", "kubeletConfigKey": "c",
    }}});
    for (object, code, end) in [
        (
            node("n4", json!({}), json!({})),
            403,
            "node \"n3\" is not allowed to modify node \"n4\"",
        ),
        (
            json!({"metadata": {"generateName": "n3-"}}),
            403,
            "node \"n3\" is not allowed to modify node \"\"",
        ),
        (
            node(
                "n3",
                json!({"k8s.io/b": "x", "kubernetes.io/a": "x", "c": "x"}),
                json!({}),
            ),
            403,
            "node \"n3\" is not allowed to set the following labels: k8s.io/b, kubernetes.io/a",
        ),
        (
            node("n3", json!({}), source),
            403,
            "node \"n3\" is not allowed to create pods with a non-nil configSource",
        ),
        (
            node(
                "n3",
                json!({"kubernetes.io/hostname": "n3"}),
                json!({"taints": [{"key": "a", "effect": "NoExecute"}]}),
            ),
            201,
            "",
        ),
    ] {
        let answer = n3.call("POST", NODES, &object).await;
        check(&answer, (code, end), &object);
    }
    for (name, code) in [("n4", 403), ("n3", 200)] {
        let applied = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        let path = format!("{NODES}/{name}?fieldManager=kubelet");
        let answer = n3
            .send("PATCH", &path, "application/apply-patch+yaml", &applied)
            .await;
        assert_eq!(answer.code, code, "{name}: {}", answer.text());
    }
}

#[tokio::test]
async fn nodes_create_only_mirror_pods() {
    let server = server().await;
    let n1 = Node(&server, "n1");
    let uid = server.get(&format!("{NODES}/n1")).await.json()["metadata"]["uid"].clone();
    let mirror = |name: &str, spec: Value| {
        let mut pod = pod(name, "n1", spec);
        pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": true});
        pod["metadata"]["ownerReferences"] = json!([owner]);
        pod
    };
    let with = |change: &dyn Fn(&mut Value)| {
        let mut pod = mirror("m", json!({}));
        change(&mut pod);
        pod
    };
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = "v".into();
        mirror("m", json!({"volumes": [volume]}))
    };
    let owner = "node \"n1\" can only create pods with an owner reference set to itself";
    let reference = |what: &str| format!("node \"n1\" can not create pods that reference {what}");
    for (object, end) in [
        (pod("m", "n1", json!({})),
         "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can only create mirror pods".to_owned()),
        (with(&|pod| pod["spec"]["nodeName"] = "n2".into()),
         "node \"n1\" can only create pods with spec.nodeName set to itself".to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"] = json!([])), owner.to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"][0]["name"] = "n2".into()), owner.to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"][0]["controller"] = false.into()),
         "node \"n1\" can only create pods with a controller owner reference set to itself".to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = true.into()),
         "node \"n1\" must not set blockOwnerDeletion on an owner reference".to_owned()),
        (with(&|pod| pod["metadata"]["ownerReferences"][0]["uid"] = "x".into()),
         format!("node n1 UID mismatch: expected x got {}", uid.as_str().unwrap())),
        (mirror("m", json!({"serviceAccountName": "default"})), reference("serviceaccounts")),
        (mirror("m", json!({"imagePullSecrets": [{"name": "x"}]})), reference("secrets")),
        (volume(json!({"secret": {"secretName": "x"}})), reference("secrets")),
        (volume(json!({"configMap": {"name": "x"}})), reference("configmaps")),
        (volume(json!({"persistentVolumeClaim": {"claimName": "x"}})), reference("persistentvolumeclaims")),
        (volume(json!({"csi": {"driver": "x"}})), reference("csidrivers (via CSI volumes)")),
        (volume(json!({"projected": {"sources": [{"serviceAccountToken": {"path": "x"}}]}})),
         reference("serviceaccounts (via projected volumes)")),
        (volume(json!({"projected": {"sources": [{"clusterTrustBundle": {"name": "x", "path": "y"}}]}})),
         reference("clustertrustbundles")),
        (mirror("m", json!({"resourceClaims": [{"name": "r", "resourceClaimName": "x"}]})),
         reference("resourceclaims")),
    ] {
        let answer = n1.call("POST", PODS, &object).await;
        check(&answer, (403, &end), &object);
    }
    let fine = mirror(
        "m",
        json!({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}),
    );
    let answer = n1.call("POST", PODS, &fine).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(answer.json()["spec"]["serviceAccountName"], Value::Null);
    let path = format!("{PODS}/m?gracePeriodSeconds=0");
    assert_eq!(n1.call("DELETE", &path, &Value::Null).await.code, 200);
    // A mirror pod that an administrator creates gives the node nothing.
    named(&server, SECRETS, "s").await;
    let strong = mirror(
        "m",
        json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
    );
    made(&server, PODS, strong).await;
    assert_eq!(n1.get(&format!("{SECRETS}/s")).await, 403);
}

#[tokio::test]
async fn nodes_change_only_their_own_pods() {
    let server = server().await;
    for (name, node) in [("p1", "n1"), ("p2", "n2"), ("p0", "")] {
        made(&server, PODS, pod(name, node, json!({}))).await;
    }
    let n1 = Node(&server, "n1");
    let status = json!({"status": {"message": "x"}});
    let own = "node \"n1\" can only update pod status for pods with spec.nodeName set to itself";
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let claims =
        json!({"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]}});
    let extended = json!({"status": {"extendedResourceClaimStatus": {
        "resourceClaimName": "b",
        "requestMappings": [{"containerName": "c", "resourceName": "a.b/c", "requestName": "r"}],
    }}});
    for (name, patch, code, end) in [
        ("p1", &status, 200, ""),
        ("p2", &status, 403, own),
        ("p0", &status, 403, own),
        (
            "p1",
            &labels,
            403,
            "node \"n1\" cannot update labels through pod status",
        ),
        (
            "p1",
            &claims,
            403,
            "node \"n1\" cannot update resource claim statues",
        ),
        (
            "p1",
            &extended,
            403,
            "node \"n1\" cannot update extended resource claim status",
        ),
    ] {
        let answer = n1.patch(&format!("{PODS}/{name}/status"), patch).await;
        check(&answer, (code, end), &format_args!("{name} {patch}"));
    }
    let evicted = "node n1 can only evict pods with spec.nodeName set to itself";
    for (name, code, end) in [
        ("p2", 403, evicted),
        ("p0", 403, evicted),
        ("none", 404, "pod \"none\" not found"),
        ("p1", 201, ""),
    ] {
        let eviction = json!({"metadata": {"name": name}, "deleteOptions": {"dryRun": ["All"]}});
        let answer = n1
            .call("POST", &format!("{PODS}/{name}/eviction"), &eviction)
            .await;
        check(&answer, (code, end), &name);
    }
    let deleted = "node \"n1\" can only delete pods with spec.nodeName set to itself";
    for (name, code, end) in [
        ("p2", 403, deleted),
        ("p0", 403, deleted),
        ("none", 404, "pods \"none\" not found"),
        ("p1", 200, ""),
    ] {
        let answer = n1
            .call("DELETE", &format!("{PODS}/{name}"), &Value::Null)
            .await;
        check(&answer, (code, end), &name);
    }
    // Neither the role of nodes nor a strong role lifts the restriction.
    let group = "rbac.authorization.k8s.io";
    let bound = json!({
        "metadata": {"name": "strong"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
    });
    made(
        &server,
        &format!("/apis/{group}/v1/clusterrolebindings"),
        bound,
    )
    .await;
    let answer = n1.call("DELETE", &format!("{PODS}/p2"), &Value::Null).await;
    check(&answer, (403, deleted), &"p2");
    let answer = n1.call("DELETE", PODS, &Value::Null).await;
    check(&answer, (403, deleted), &"all pods");
    let answer = n1.patch(&format!("{PODS}/p2"), &labels).await;
    let end = "unexpected operation \"UPDATE\", node \"n1\" can only create and delete mirror pods";
    check(&answer, (403, end), &"p2");
    let target = json!({"metadata": {"name": "p0"}, "target": {"kind": "Node", "name": "n1"}});
    let answer = n1
        .call("POST", &format!("{PODS}/p0/binding"), &target)
        .await;
    let end = "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed";
    check(&answer, (403, end), &"p0");
}

#[tokio::test]
async fn nodes_report_the_size_of_their_claims() {
    let server = server().await;
    made(&server, CLAIMS, claim("k1", "v1")).await;
    made(&server, CLAIMS, claim("k2", "v2")).await;
    let spec = json!({"volumes": [{"name": "k", "persistentVolumeClaim": {"claimName": "k1"}}]});
    made(&server, PODS, pod("p", "n1", spec)).await;
    let n1 = Node(&server, "n1");
    let start = "node \"n1\" is not allowed to update fields other than status.quantity and status.conditions: ";
    let size = json!({"status": {"capacity": {"storage": "2Gi"}}});
    for (name, patch, code, end) in [
        ("k1/status", size.clone(), 200, String::new()),
        (
            "k1/status",
            json!({"status": {"conditions": [{"type": "Resizing", "status": "True"}]}}),
            200,
            String::new(),
        ),
        (
            "k1/status",
            json!({"status": {"phase": "Lost"}}),
            403,
            format!("{start}status.phase"),
        ),
        (
            "k1/status",
            json!({"metadata": {"labels": {"a": "b"}}}),
            403,
            format!("{start}metadata.labels"),
        ),
        (
            "k1",
            json!({"metadata": {"labels": {"a": "b"}}}),
            403,
            "can only get individual resources of this type".into(),
        ),
        (
            "k2/status",
            size,
            403,
            "no relationship found between node 'n1' and this object".into(),
        ),
    ] {
        let answer = n1.patch(&format!("{CLAIMS}/{name}"), &patch).await;
        check(&answer, (code, &end), &format_args!("{name} {patch}"));
    }
}

#[tokio::test]
async fn nodes_have_their_own_lease_and_csi_node() {
    let server = server().await;
    let n1 = Node(&server, "n1");
    let object = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let lease = "can only access node lease with the same name as the requesting node";
    let csi = "can only access CSINode with the same name as the requesting node";
    for (path, spec, end) in [
        (LEASES, json!({}), lease),
        (CSI_NODES, json!({"drivers": []}), csi),
    ] {
        let answer = n1.call("POST", path, &object("n2", spec.clone())).await;
        check(&answer, (403, end), &path);
        let answer = n1.call("POST", path, &object("n1", spec.clone())).await;
        check(&answer, (201, ""), &path);
        made(&server, path, object("n2", spec)).await;
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        for (name, code) in [("n1", 200), ("n2", 403)] {
            let own = format!("{path}/{name}");
            assert_eq!(n1.get(&own).await, code, "{own}");
            check(&n1.patch(&own, &label).await, (code, end), &own);
        }
        assert_eq!(n1.get(path).await, 403);
    }
    // An update can create a Lease.
    let made = n1
        .call("PUT", &format!("{LEASES}/n3"), &object("n3", json!({})))
        .await;
    check(&made, (403, lease), &"n3");
    let elsewhere = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let answer = n1.call("POST", elsewhere, &object("n1", json!({}))).await;
    check(
        &answer,
        (
            403,
            "can only access leases in the \"kube-node-lease\" system namespace",
        ),
        &elsewhere,
    );
}

#[tokio::test]
async fn nodes_have_their_own_resource_slices() {
    let server = server().await;
    let n1 = Node(&server, "n1");
    let slice = |name: &str, node: &str| {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let spec =
            json!({"driver": "d.example.com", "nodeName": node, "pool": pool, "devices": []});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let end = "can only create ResourceSlice with the same NodeName as the requesting node";
    let answer = n1.call("POST", SLICES, &slice("s2", "n2")).await;
    check(&answer, (403, end), &"s2");
    assert_eq!(n1.call("POST", SLICES, &slice("s1", "n1")).await.code, 201);
    made(&server, SLICES, slice("s2", "n2")).await;
    for (name, code) in [("s1", 200), ("s2", 403)] {
        assert_eq!(n1.get(&format!("{SLICES}/{name}")).await, code, "{name}");
    }
    let own = format!("{SLICES}?fieldSelector=spec.nodeName%3Dn1");
    assert_eq!(n1.get(&own).await, 200);
    assert_eq!(n1.get(SLICES).await, 403);
    assert_eq!(n1.call("DELETE", SLICES, &Value::Null).await.code, 403);
    assert_eq!(n1.call("DELETE", &own, &Value::Null).await.code, 200);
    let left = server.get(SLICES).await.json();
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn nodes_get_tokens_for_their_pods() {
    let server = server().await;
    named(&server, ACCOUNTS, "other").await;
    made(&server, CLAIMS, claim("k1", "v1")).await;
    made(&server, VOLUMES, volume("v1", "k1", "s")).await;
    let driver = json!({
        "metadata": {"name": "driver.example"},
        "spec": {"tokenRequests": [{"audience": "of-driver"}]},
    });
    made(&server, "/apis/storage.k8s.io/v1/csidrivers", driver).await;
    let token =
        |audience: &str| json!({"serviceAccountToken": {"path": audience, "audience": audience}});
    let spec = json!({
        "serviceAccountName": "default",
        "volumes": [
            {"name": "t", "projected": {"sources": [token("of-volume"), {"serviceAccountToken": {"path": "x"}}]}},
            {"name": "k", "persistentVolumeClaim": {"claimName": "k1"}},
        ],
    });
    let p1 = made(&server, PODS, pod("p1", "n1", spec)).await;
    let spec = json!({"serviceAccountName": "default"});
    let p2 = made(&server, PODS, pod("p2", "n2", spec.clone())).await;
    let p3 = made(&server, PODS, pod("p3", "n1", spec)).await;
    let bound = |pod: &Value| {
        let metadata = &pod["metadata"];
        json!({"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]})
    };
    let (p1, p2, p3) = (bound(&p1), bound(&p2), bound(&p3));
    let changed = |field: &str, value: Value| {
        let mut bound = p1.clone();
        bound[field] = value;
        bound
    };
    let unbound = "node requested token not bound to a pod";
    let audience = "system:node:n1 is not authorized to request tokens for audience";
    let request = async |account: &str, bound: &Value, audiences: &[&str]| {
        let spec = json!({"boundObjectRef": bound, "audiences": audiences});
        let path = format!("{ACCOUNTS}/{account}/token");
        Node(&server, "n1")
            .call("POST", &path, &json!({"spec": spec}))
            .await
    };
    for (account, bound, audiences, code, end) in [
        ("default", p1.clone(), &[][..], 201, String::new()),
        ("default", p1.clone(), &["of-volume"][..], 201, String::new()),
        ("default", p1.clone(), &["of-driver"][..], 201, String::new()),
        ("default", p1.clone(), &["x"][..], 403, format!("{audience} \"x\"")),
        ("default", p3.clone(), &["of-volume"][..], 403, format!("{audience} \"of-volume\"")),
        ("default", p1.clone(), &["of-volume", "x"][..], 403, "node may only request 0 or 1 audiences".into()),
        ("default", Value::Null, &[][..], 403, unbound.into()),
        ("default", changed("kind", "Node".into()), &[][..], 403, unbound.into()),
        ("default", changed("uid", Value::Null), &[][..], 403, "node requested token with a pod binding without a uid".into()),
        ("default", changed("uid", "x".into()), &[][..], 403,
         "the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated".into()),
        ("default", changed("name", "none".into()), &[][..], 404, "pod \"none\" not found".into()),
        ("default", p2.clone(), &[][..], 403, "node requested token bound to a pod scheduled on a different node".into()),
        ("other", p1.clone(), &[][..], 403, "no relationship found between node 'n1' and this object".into()),
    ] {
        let answer = request(account, &bound, audiences).await;
        check(&answer, (code, &end), &format_args!("{account} {bound} {audiences:?}"));
    }
    // A role can allow further audiences.
    let group = "rbac.authorization.k8s.io";
    let rule = json!({
        "apiGroups": [""], "resources": ["x"], "resourceNames": ["default"],
        "verbs": ["request-serviceaccounts-token-audience"],
    });
    let role = json!({"metadata": {"name": "x"}, "rules": [rule]});
    made(&server, &format!("/apis/{group}/v1/clusterroles"), role).await;
    let binding = json!({
        "metadata": {"name": "x"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "x"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
    });
    made(
        &server,
        &format!("/apis/{group}/v1/clusterrolebindings"),
        binding,
    )
    .await;
    assert_eq!(request("default", &p1, &["x"]).await.code, 201);
}

fn certificate_request(name: &str, common_name: &str, signer: &str) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationName, "system:nodes");
    subject.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": {"name": name},
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": signer,
            "usages": ["digital signature", "client auth"],
        },
    })
}

#[tokio::test]
async fn nodes_request_only_their_own_certificates() {
    let server = server().await;
    let n1 = Node(&server, "n1");
    let (client, serving, user) = (
        "kubernetes.io/kube-apiserver-client-kubelet",
        "kubernetes.io/kubelet-serving",
        "kubernetes.io/kube-apiserver-client",
    );
    let end = "can only create a node CSR with CN=system:node:n1";
    for (name, common_name, signer, code) in [
        ("a", "system:node:n2", client, 403),
        ("b", "n1", client, 403),
        ("c", "system:node:n2", serving, 403),
        ("d", "system:node:n1", client, 201),
        ("e", "ana", user, 201),
    ] {
        let request = certificate_request(name, common_name, signer);
        let answer = n1.call("POST", REQUESTS, &request).await;
        check(
            &answer,
            (code, end),
            &format_args!("{common_name} {signer}"),
        );
    }
    assert_eq!(n1.get(&format!("{REQUESTS}/d")).await, 200);
    let approval = json!({"status": {"conditions": []}});
    let answer = n1.patch(&format!("{REQUESTS}/d/approval"), &approval).await;
    assert_eq!(answer.code, 403);
}

#[tokio::test]
async fn nodes_request_certificates_for_their_pods() {
    let server = server().await;
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    let node = uid(&server.get(&format!("{NODES}/n1")).await.json());
    let account = uid(&server.get(&format!("{ACCOUNTS}/default")).await.json());
    let spec = json!({"volumes": [{"name": "v", "projected": {"sources": [{"podCertificate": {
        "signerName": "example.com/used", "keyType": "ED25519", "credentialBundlePath": "x",
    }}]}}]});
    let p1 = made(&server, PODS, pod("p1", "n1", spec)).await;
    let p2 = made(&server, PODS, pod("p2", "n2", json!({}))).await;
    let key = KeyPair::generate().unwrap();
    let request = CertificateParams::default()
        .serialize_request(&key)
        .unwrap();
    let stub = STANDARD.encode(request.der());
    let spec = json!({
        "signerName": "example.com/used",
        "podName": "p1", "podUID": uid(&p1),
        "serviceAccountName": "default", "serviceAccountUID": account,
        "nodeName": "n1", "nodeUID": node,
        "stubPKCS10Request": stub,
    });
    let n1 = Node(&server, "n1");
    for (fields, code, part) in [
        (
            json!({"nodeName": "n2"}),
            403,
            "which is not the requesting node \"n1\"",
        ),
        (
            json!({"nodeUID": "x"}),
            500,
            "inconsistent with the running node",
        ),
        (
            json!({"podName": "none"}),
            500,
            "while retrieving pod \"default/none\" named in the PodCertificateRequest: pod \"none\" not found",
        ),
        (
            json!({"podUID": "x"}),
            500,
            "contains pod UID (\"x\") which differs from running pod",
        ),
        (
            json!({"podName": "p2", "podUID": uid(&p2)}),
            403,
            "pod \"default/p2\" is not running on node \"n1\"",
        ),
        (
            json!({"serviceAccountName": "other"}),
            403,
            "contains serviceAccountName (\"other\") that differs",
        ),
        (
            json!({"serviceAccountUID": "x"}),
            500,
            "names service account UID \"x\"",
        ),
        (
            json!({"signerName": "example.com/unused"}),
            403,
            "pod \"default/p1\" does not mount a podCertificate projected volume for signer \"example.com/unused\"",
        ),
        (json!({}), 201, ""),
    ] {
        let mut spec = spec.clone();
        for (field, value) in fields.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let object = json!({"metadata": {"name": "r"}, "spec": spec});
        let answer = n1.call("POST", POD_REQUESTS, &object).await;
        assert_eq!(answer.code, code, "{fields}: {}", answer.text());
        assert!(
            answer.text().contains(&part.replace('"', "\\\"")),
            "{fields}: {}",
            answer.text()
        );
    }
    assert_eq!(n1.get(&format!("{POD_REQUESTS}/r")).await, 200);
    assert_eq!(
        Node(&server, "n2").get(&format!("{POD_REQUESTS}/r")).await,
        403
    );
    assert_eq!(n1.get(POD_REQUESTS).await, 403);
    let own = format!("{POD_REQUESTS}?fieldSelector=spec.nodeName%3Dn1");
    assert_eq!(n1.get(&own).await, 200);
}

#[tokio::test]
async fn with_always_allow_nodes_are_not_restricted() {
    let server = Server::authorized_by(AuthorizationMode::AlwaysAllow);
    let n1 = Node(&server, "n1");
    let answer = n1
        .call("POST", NODES, &json!({"metadata": {"name": "n2"}}))
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    named(&server, SECRETS, "s").await;
    assert_eq!(n1.get(&format!("{SECRETS}/s")).await, 200);
}
