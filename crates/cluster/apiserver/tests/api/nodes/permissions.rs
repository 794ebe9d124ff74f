//! The permissions that the node authorizer grants, and the identity of nodes.

use longshore_apiserver::AuthorizationMode;
use serde_json::{Value, json};

use super::{
    ACCOUNTS, CLAIMS, NODES, REVIEWS, SECRETS, VOLUMES, check, claim, named, pod, server, volume,
};
use crate::{
    common::{CONFIG_MAPS, PODS, Server},
    users::As,
};

#[tokio::test]
async fn nodes_read_what_their_pods_use() {
    let server = server().await;
    for name in ["used", "of-volume", "other"] {
        named(&server, SECRETS, name).await;
        named(&server, CONFIG_MAPS, name).await;
        named(&server, ACCOUNTS, name).await;
    }
    server.made(CLAIMS, claim("k1", "v1")).await;
    server.made(CLAIMS, claim("k2", "v2")).await;
    server.made(VOLUMES, volume("v1", "k1", "of-volume")).await;
    server.made(VOLUMES, volume("v2", "k2", "other")).await;
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
    let (n1, n2) = (As::node(&server, "n1"), As::node(&server, "n2"));
    let codes = async |node: &As<'_>, expected: u16, when: &str| {
        for path in &own {
            assert_eq!(node.get(path).await, expected, "{when}: {path}");
        }
    };
    codes(&n1, 403, "there is not a pod").await;
    server.made(PODS, pod("p", "", spec.clone())).await;
    codes(&n1, 403, "the pod has no node").await;
    let target = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}});
    server.made(&format!("{PODS}/p/binding"), target).await;
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
    server.made(PODS, pod("p", "n2", spec)).await;
    codes(&n1, 403, "another pod").await;
    codes(&n2, 200, "another pod").await;
}

#[tokio::test]
async fn relations_are_read_again_after_a_restore() {
    let server = server().await;
    named(&server, SECRETS, "s").await;
    let empty = server.engine.snapshot();
    let spec = json!({"volumes": [{"name": "s", "secret": {"secretName": "s"}}]});
    server.made(PODS, pod("p", "n1", spec)).await;
    let full = server.engine.snapshot();
    let n1 = As::node(&server, "n1");
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
    let n1 = As::node(&server, "n1");
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
    server.made(&bindings, bound("gone")).await;
    let message = n1.call("GET", &path, &Value::Null).await.message();
    let roles = "rbac: RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found";
    assert_eq!(message, format!("{node}\n{roles}"));
    // The role of nodes has no subjects, but subjects can be bound to it.
    let unbound = server.get(&format!("{bindings}/system:node")).await.json();
    assert_eq!(unbound["subjects"], Value::Null);
    assert_eq!(n1.get(SECRETS).await, 403);
    let answer = server
        .call("DELETE", &format!("{bindings}/system:node"), &[], "")
        .await;
    assert_eq!(answer.code, 200);
    server.made(&bindings, bound("system:node")).await;
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
    let n1 = As::node(&server, "n1");
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
    server
        .made(&format!("{group}/validatingadmissionpolicies"), policy)
        .await;
    let binding = json!({
        "metadata": {"name": "lists"},
        "spec": {"policyName": "lists", "validationActions": ["Deny"]},
    });
    let bindings = format!("{group}/validatingadmissionpolicybindings");
    server.made(&bindings, binding).await;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    for (node, code, end) in [("n1", 200, ""), ("n2", 422, "not for n1")] {
        let answer = As::node(&server, node)
            .patch(&format!("{NODES}/{node}"), &label)
            .await;
        check(&answer, (code, end), &node);
    }
    // The restriction comes before the policy.
    let answer = As::node(&server, "n2")
        .patch(&format!("{NODES}/n1"), &label)
        .await;
    let end = "node \"n2\" is not allowed to modify node \"n1\"";
    check(&answer, (403, end), &"n2");
}

#[tokio::test]
async fn with_always_allow_nodes_are_not_restricted() {
    let server = Server::authorized_by(AuthorizationMode::AlwaysAllow);
    let n1 = As::node(&server, "n1");
    let answer = n1
        .call("POST", NODES, &json!({"metadata": {"name": "n2"}}))
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    named(&server, SECRETS, "s").await;
    assert_eq!(n1.get(&format!("{SECRETS}/s")).await, 200);
}
