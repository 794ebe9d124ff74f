//! A change that comes between the checks of a write and the write: a validating webhook, which is
//! called after the server's own checks, makes the change before it accepts the write. The checks
//! must see the version that is written.

use std::sync::atomic::{AtomicBool, Ordering};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    MERGE,
    common::{CONFIG_MAPS, PODS, Server},
    config_map, configure,
    hook::{Hook, review},
};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const BUNDLES: &str = "/apis/certificates.k8s.io/v1/clustertrustbundles";
const LIMITS: &str = "/api/v1/namespaces/default/limitranges";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const POLICY_BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// A request of the user `u`.
struct Write {
    method: &'static str,
    path: String,
    media_type: &'static str,
    body: Value,
}

/// A change that the administrator makes meanwhile.
type Change = (&'static str, String, Value);

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

fn role(name: &str, rules: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
           "metadata": {"name": name, "namespace": "default"}, "rules": rules})
}

fn secrets() -> Value {
    json!([rule("", "secrets", &["get", "list"])])
}

fn nothing() -> Value {
    json!([rule("", "configmaps", &["get"])])
}

async fn create(server: &Server, path: &str, body: Value) {
    let answer = server.post(path, &body).await;
    assert_eq!(answer.code, 201, "{path}: {}", answer.text());
}

fn bound(name: &str, kind: &str, role: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
    })
}

/// A user who may send all writes of the tests, and has the permissions of the role `own`.
async fn server() -> Server {
    let server = Server::new();
    let verbs = ["get", "create", "update", "patch"];
    let all = |group, resource| rule(group, resource, &verbs);
    let rbac = "rbac.authorization.k8s.io";
    let writer = json!([
        all(rbac, "roles"),
        all(rbac, "rolebindings"),
        all("certificates.k8s.io", "*"),
        all("", "configmaps"),
        all("", "pods"),
        rule("", "limitranges", &["update", "patch"]),
    ]);
    let cluster = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
    let (roles, bindings) = (
        format!("{RBAC}/clusterroles"),
        format!("{RBAC}/clusterrolebindings"),
    );
    create(&server, &roles, cluster("writer", writer)).await;
    create(&server, &bindings, bound("writer", "ClusterRole", "writer")).await;
    let signs = rule(
        "certificates.k8s.io",
        "signers",
        &["approve", "sign", "attest"],
    );
    create(&server, &roles, cluster("signer", json!([signs]))).await;
    create(&server, &bindings, bound("signer", "ClusterRole", "signer")).await;
    create(&server, ROLES, role("own", secrets())).await;
    create(&server, ROLES, role("other", nothing())).await;
    create(&server, BINDINGS, bound("own", "Role", "own")).await;
    server
}

/// Sends a write, and makes a change when its webhook is called first. Returns the code and the
/// message of the response, and the number of calls of the webhook.
async fn race(server: &Server, write: &Write, change: Change) -> (u16, String, usize) {
    let hook = Hook::start().await;
    let operations = ["CREATE", "UPDATE"];
    let mut webhook = hook.webhook("/v", &operations, &["*/*"]);
    webhook["matchConditions"] =
        json!([{"name": "u", "expression": "request.userInfo.username == 'u'"}]);
    configure(server, "Validating", "race", &[webhook]).await;
    let administrator = (server.api.clone(), server.engine.clone());
    let done = std::sync::Arc::new(AtomicBool::new(false));
    hook.on_async("/v", move |request| {
        let (server, change) = (
            Server::over(administrator.0.clone(), administrator.1.clone()),
            change.clone(),
        );
        let is_first = !done.swap(true, Ordering::SeqCst);
        Box::pin(async move {
            if is_first {
                let (method, path, body) = &change;
                let kind = if *method == "PATCH" { MERGE } else { JSON };
                let body = if body.is_null() {
                    String::new()
                } else {
                    body.to_string()
                };
                let changed = server
                    .call(method, path, &[("content-type", kind)], body)
                    .await;
                assert!(changed.code < 300, "{path}: {}", changed.text());
            }
            review(&request, json!({"allowed": true}))
        })
    });
    let headers = [
        ("impersonate-user", "u"),
        ("content-type", write.media_type),
    ];
    let answer = server
        .call(write.method, &write.path, &headers, write.body.to_string())
        .await;
    let message = if answer.code < 300 {
        String::new()
    } else {
        answer.message()
    };
    (answer.code, message, hook.calls().len())
}

fn put(path: &str, body: Value) -> Write {
    Write {
        method: "PUT",
        path: path.to_owned(),
        media_type: JSON,
        body,
    }
}

fn patch(path: &str, body: Value) -> Write {
    Write {
        method: "PATCH",
        path: path.to_owned(),
        media_type: MERGE,
        body,
    }
}

fn apply(path: &str, body: Value) -> Write {
    let path = format!("{path}?fieldManager=m&force=true");
    Write {
        method: "PATCH",
        path,
        media_type: APPLY,
        body,
    }
}

fn post(path: &str, body: Value) -> Write {
    Write {
        method: "POST",
        path: path.to_owned(),
        media_type: JSON,
        body,
    }
}

#[tokio::test]
async fn rights_that_were_revoked_meanwhile_cannot_be_granted() {
    let own = format!("{ROLES}/own");
    let other = format!("{ROLES}/other");
    let revoked: Change = ("PUT", own.clone(), role("own", nothing()));
    let unbound: Change = ("DELETE", format!("{BINDINGS}/own"), Value::Null);
    let strong = json!({"rules": secrets(), "metadata": {"labels": {"a": "b"}}});
    let labelled = |name: &str| {
        let mut role = role(name, secrets());
        role["metadata"]["labels"] = json!({"a": "b"});
        role
    };
    let new = role("new", secrets());
    let binding = bound("new", "Role", "own");
    let writes = [
        put(&own, labelled("own")),
        patch(&own, strong.clone()),
        apply(&own, labelled("own")),
        put(&other, labelled("other")),
        patch(&other, strong),
        apply(&other, labelled("other")),
        post(ROLES, new.clone()),
        put(&format!("{ROLES}/new"), new.clone()),
        apply(&format!("{ROLES}/new"), new),
        post(BINDINGS, binding),
    ];
    for write in &writes {
        for change in [&revoked, &unbound] {
            let is_binding = write.path == BINDINGS;
            if is_binding && change.0 == "PUT" {
                // The role itself has become weaker.
                continue;
            }
            let server = server().await;
            let case = format!("{} {} {}", write.method, write.path, change.0);
            let (code, message, calls) = race(&server, write, change.clone()).await;
            assert_eq!((code, calls), (403, 1), "{case}: {message}");
            assert!(
                message.contains("attempting to grant RBAC permissions not currently held"),
                "{case}: {message}"
            );
        }
    }
    // Other changes have no effect.
    for write in &writes {
        let server = server().await;
        let change = ("POST", CONFIG_MAPS.to_owned(), config_map("unrelated"));
        let (code, message, calls) = race(&server, write, change).await;
        assert!(
            matches!(code, 200 | 201),
            "{} {}: {message}",
            write.method,
            write.path
        );
        assert_eq!(calls, 1);
    }
    // The permission to bind was granted meanwhile: the write is reviewed again, and allowed.
    let server = server().await;
    let change = (
        "PATCH",
        format!("{ROLES}/own"),
        json!({"metadata": {"labels": {"a": "b"}}}),
    );
    let (code, message, calls) = race(&server, &writes[6], change).await;
    assert_eq!((code, calls), (201, 2), "{message}");
}

#[tokio::test]
async fn signers_that_were_revoked_meanwhile_cannot_be_used() {
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let pem = pem.serialize_request(&key).unwrap().pem().unwrap();
    let request = json!({"metadata": {"name": "r"}, "spec": {
        "request": STANDARD.encode(pem), "signerName": "example.com/a", "usages": ["client auth"]}});
    let condition = json!({"type": "Approved", "status": "True", "reason": "r", "message": "m"});
    let approved = json!({"status": {"conditions": [condition]}});
    let failed = json!({"status": {"conditions": [
        {"type": "Failed", "status": "True", "reason": "r", "message": "m"}]}});
    let authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let mut authority = authority;
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = authority.self_signed(&key).unwrap().pem();
    let bundle = json!({"metadata": {"name": "example.com:a:b"}, "spec": {
        "signerName": "example.com/a", "trustBundle": certificate}});
    let revoked = (
        "DELETE",
        format!("{RBAC}/clusterrolebindings/signer"),
        Value::Null,
    );
    for (write, refusal) in [
        (
            patch(&format!("{REQUESTS}/r/approval"), approved),
            "not permitted to approve",
        ),
        (
            patch(&format!("{REQUESTS}/r/status"), failed),
            "not permitted to sign",
        ),
        (post(BUNDLES, bundle), "not permitted to attest"),
    ] {
        let server = server().await;
        create(&server, REQUESTS, request.clone()).await;
        let (code, message, calls) = race(&server, &write, revoked.clone()).await;
        assert_eq!((code, calls), (403, 1), "{}: {message}", write.path);
        assert!(message.contains(refusal), "{message}");
    }
}

#[tokio::test]
async fn policies_see_the_parameters_of_the_time_of_the_write() {
    let limit = |limit: &str| json!({"metadata": {"name": "limits", "labels": {"a": "b"}}, "data": {"limit": limit}});
    for reference in [
        json!({"name": "limits", "namespace": "default", "parameterNotFoundAction": "Allow"}),
        json!({"selector": {"matchLabels": {"a": "b"}}, "namespace": "default", "parameterNotFoundAction": "Allow"}),
    ] {
        let policy = json!({"metadata": {"name": "p"}, "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
            "validations": [{"expression": "size(object.metadata.name) <= int(params.data.limit)"}],
        }});
        let binding = json!({"metadata": {"name": "p"}, "spec": {
            "policyName": "p", "validationActions": ["Deny"], "paramRef": reference}});
        let pod = json!({"metadata": {"name": "abcdef"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        for (before, change, expected) in [
            (
                Some("9"),
                ("PUT", format!("{CONFIG_MAPS}/limits"), limit("3")),
                422,
            ),
            (None, ("POST", CONFIG_MAPS.to_owned(), limit("3")), 422),
            (
                Some("9"),
                ("POST", CONFIG_MAPS.to_owned(), config_map("unrelated")),
                201,
            ),
        ] {
            let server = server().await;
            create(&server, POLICIES, policy.clone()).await;
            create(&server, POLICY_BINDINGS, binding.clone()).await;
            if let Some(before) = before {
                create(&server, CONFIG_MAPS, limit(before)).await;
            }
            let (code, message, calls) = race(&server, &post(PODS, pod.clone()), change).await;
            assert_eq!(
                (code, calls),
                (expected, 1),
                "{reference} {before:?}: {message}"
            );
        }
    }
}

#[tokio::test]
async fn limits_of_a_namespace_apply_from_the_time_of_the_write() {
    let container = json!({"name": "c", "image": "i", "resources": {"limits": {"cpu": "3"}}});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}});
    let enforced =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let limits = json!({"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "max": {"cpu": "2"}}]}});
    for (change, text) in [
        (
            (
                "PATCH",
                "/api/v1/namespaces/default".to_owned(),
                enforced.clone(),
            ),
            "violates PodSecurity",
        ),
        (
            ("POST", LIMITS.to_owned(), limits),
            "maximum cpu usage per Container",
        ),
    ] {
        let server = server().await;
        let (code, message, _) = race(&server, &post(PODS, pod.clone()), change).await;
        assert_eq!(code, 403, "{message}");
        assert!(message.contains(text), "{message}");
    }
    // The same for a change of a pod.
    let server = server().await;
    create(&server, PODS, pod).await;
    let change = ("PATCH", "/api/v1/namespaces/default".to_owned(), enforced);
    let image = json!({"spec": {"containers": [{"name": "c", "image": "other"}]}});
    let mut write = patch(&format!("{PODS}/p"), image);
    write.media_type = "application/strategic-merge-patch+json";
    let (code, message, _) = race(&server, &write, change).await;
    assert_eq!(code, 403, "{message}");
    assert!(message.contains("violates PodSecurity"), "{message}");
}

#[tokio::test]
async fn a_write_that_becomes_a_creation_needs_the_permission_to_create() {
    let limits = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}});
    let path = format!("{LIMITS}/l");
    for write in [put(&path, limits.clone()), apply(&path, limits.clone())] {
        let server = server().await;
        create(&server, LIMITS, limits.clone()).await;
        let (code, message, calls) =
            race(&server, &write, ("DELETE", path.clone(), Value::Null)).await;
        assert_eq!((code, calls), (403, 1), "{}: {message}", write.method);
        let expected =
            "limitranges \"l\" is forbidden: User \"u\" cannot create resource \"limitranges\"";
        assert!(message.starts_with(expected), "{message}");
    }
}
