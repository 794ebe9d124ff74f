//! Requests whose items all have a problem: the answers are short for any input.

use serde_json::{Value, json};

use crate::common::{CONFIG_MAPS, PODS, Server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";
/// The largest answer, in bytes: causes, and the message that repeats them.
const MOST: usize = 2 << 20;
/// The largest head of an answer that clients accept.
const MOST_HEADERS: usize = 32 << 10;

/// A JSON list that repeats a text.
fn list(item: &str, count: usize) -> String {
    format!("[{}]", vec![item; count].join(","))
}

/// JSON fields with the same value and different names.
fn fields(prefix: &str, value: &str, count: usize) -> String {
    let fields = (0..count).map(|index| format!("\"{prefix}{index}\":{value}"));
    fields.collect::<Vec<_>>().join(",")
}

async fn check(server: &Server, what: &str, request: (&str, &str, &str), body: String) -> u16 {
    let (method, path, media_type) = request;
    let length = body.len();
    assert!(length < 3 << 20, "{what}: {length}");
    let headers = [("content-type", media_type), ("impersonate-user", "u")];
    let answer = server.call(method, path, &headers, body).await;
    let bytes = answer.bytes.len();
    let head: usize = answer.headers.values().map(http::HeaderValue::len).sum();
    println!(
        "{what}: {length} B are answered by {} with {bytes} B",
        answer.code
    );
    assert!(bytes <= MOST, "{what}: {bytes} B");
    assert!(head <= MOST_HEADERS, "{what}: {head} B of headers");
    answer.code
}

#[tokio::test]
async fn answers_are_short() {
    let server = Server::new();
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "create", "update", "patch"]}]);
    let role = json!({"metadata": {"name": "r"}, "rules": all});
    let binding = json!({"metadata": {"name": "r"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}});
    for (plural, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        assert_eq!(server.post(&path, &body).await.code, 201);
    }
    let review = |kind: &str, spec: &str| {
        format!(
            "{{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"{kind}\",\"spec\":{{{spec}}}}}"
        )
    };
    let selector = format!(
        "\"resourceAttributes\":{{\"namespace\":\"default\",\"fieldSelector\":{{\"requirements\":{}}}}}",
        list("{}", 700_000)
    );
    let about = format!("\"user\":\"a\",{selector}");
    let reviews = [
        (
            "SelfSubjectAccessReview",
            format!("{REVIEWS}/selfsubjectaccessreviews"),
            &selector,
        ),
        (
            "SubjectAccessReview",
            format!("{REVIEWS}/subjectaccessreviews"),
            &about,
        ),
        (
            "LocalSubjectAccessReview",
            format!("{REVIEWS}/namespaces/default/localsubjectaccessreviews"),
            &about,
        ),
    ];
    for (kind, path, spec) in reviews {
        let code = check(&server, kind, ("POST", &path, JSON), review(kind, spec)).await;
        assert_eq!(code, 422, "{kind}");
    }
    let pod = |containers: &str| {
        format!("{{\"metadata\":{{\"name\":\"p\"}},\"spec\":{{\"containers\":{containers}}}}}")
    };
    let container = |rest: &str| pod(&format!("[{{\"name\":\"c\",\"image\":\"i\",{rest}}}]"));
    let long = format!("\"{}\"", "x".repeat(2 << 20));
    let metadata = |rest: &str| format!("{{\"metadata\":{{\"name\":\"c\",{rest}}}}}");
    let ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let strict = format!("{PODS}?fieldValidation=Strict");
    let cases = [
        ("containers", PODS, pod(&list("{}", 100_000))),
        (
            "variables",
            PODS,
            container(&format!("\"env\":{}", list("{\"name\":\"\"}", 100_000))),
        ),
        (
            "ports",
            PODS,
            container(&format!(
                "\"ports\":{}",
                list("{\"containerPort\":0}", 100_000)
            )),
        ),
        (
            "long value",
            PODS,
            container(&format!("\"imagePullPolicy\":{long}")),
        ),
        ("long kind", PODS, format!("{{\"kind\":{long}}}")),
        (
            "long name",
            CONFIG_MAPS,
            format!("{{\"metadata\":{{\"name\":{long}}}}}"),
        ),
        (
            "unknown fields",
            PODS,
            container(&fields("f", "1", 200_000)),
        ),
        (
            "refused fields",
            &strict,
            container(&fields("f", "1", 200_000)),
        ),
        (
            "duplicate fields",
            PODS,
            container(&vec!["\"tty\":true"; 200_000].join(",")),
        ),
        (
            "refused duplicates",
            &strict,
            container(&format!(
                "{},{}",
                fields("f", "1", 90_000),
                fields("f", "1", 90_000)
            )),
        ),
        (
            "labels",
            CONFIG_MAPS,
            metadata(&format!("\"labels\":{{{}}}", fields("/", "\"_\"", 150_000))),
        ),
        (
            "finalizers",
            CONFIG_MAPS,
            metadata(&format!("\"finalizers\":{}", list("\"_\"", 300_000))),
        ),
        (
            "owners",
            CONFIG_MAPS,
            metadata(&format!("\"ownerReferences\":{}", list("{}", 300_000))),
        ),
        (
            "selectors",
            deployments,
            format!(
                "{{\"metadata\":{{\"name\":\"d\"}},\"spec\":{{\"selector\":{{\"matchExpressions\":{}}},\"template\":{{}}}}}}",
                list("{\"key\":\"_\"}", 150_000)
            ),
        ),
        (
            "rules of an Ingress",
            ingresses,
            format!(
                "{{\"metadata\":{{\"name\":\"d\"}},\"spec\":{{\"rules\":{}}}}}",
                list("{\"host\":\"_\"}", 150_000)
            ),
        ),
        (
            "webhooks",
            hooks,
            format!(
                "{{\"metadata\":{{\"name\":\"d\"}},\"webhooks\":{}}}",
                list("{\"name\":\"_\"}", 30_000)
            ),
        ),
    ];
    for (what, path, body) in cases {
        check(&server, what, ("POST", path, JSON), body).await;
    }
    let patch = list("{\"op\":\"test\",\"path\":\"/a\"}", 9_000);
    server.config_map("m").await;
    let path = format!("{CONFIG_MAPS}/m");
    check(
        &server,
        "tests of a patch",
        ("PATCH", &path, "application/json-patch+json"),
        patch,
    )
    .await;
    check(
        &server,
        "a long path",
        ("PATCH", &path, "application/json-patch+json"),
        format!(
            "[{{\"op\":\"remove\",\"path\":\"/{}\"}}]",
            "a".repeat(2 << 20)
        ),
    )
    .await;
}

#[tokio::test]
async fn conflicts_of_an_apply_are_short() {
    let server = Server::new();
    let data = |value: &str| fields("some-longer-name-of-a-field-", value, 8_000);
    let body = |value: &str| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"c\"}},\"data\":{{{}}}}}",
            data(value)
        )
    };
    for (manager, value, expected) in [("a", "\"1\"", 201), ("b", "\"2\"", 409)] {
        let path = format!("{CONFIG_MAPS}/c?fieldManager={manager}");
        let answer = server
            .patch(&path, "application/apply-patch+yaml", &body(value))
            .await;
        assert_eq!(answer.code, expected);
        assert!(answer.bytes.len() <= MOST, "{}", answer.bytes.len());
        if expected == 409 {
            assert!(
                answer
                    .message()
                    .starts_with("Apply failed with 8000 conflicts: ")
            );
            let causes = answer.json()["details"]["causes"].as_array().unwrap().len();
            assert!((2..=1001).contains(&causes), "{causes}");
        }
    }
}

#[tokio::test]
async fn rules_that_multiply_are_not_expanded() {
    let server = Server::new();
    let words = |prefix: &str| {
        (0..1000)
            .map(|n| format!("{prefix}{n}"))
            .collect::<Vec<_>>()
    };
    let writer = json!({"metadata": {"name": "w"}, "rules": [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}]});
    assert_eq!(
        server.post(&format!("{RBAC}/roles"), &writer).await.code,
        201
    );
    let binding = json!({"metadata": {"name": "w"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "w"}});
    assert_eq!(
        server
            .post(&format!("{RBAC}/rolebindings"), &binding)
            .await
            .code,
        201
    );
    let path = format!("{RBAC}/roles");
    let send = async |rule: Value| {
        let role = json!({"metadata": {"name": "x"}, "rules": [rule]});
        let headers = [("content-type", JSON), ("impersonate-user", "u")];
        server.call("POST", &path, &headers, role.to_string()).await
    };
    let refused = send(json!({"apiGroups": words("g"), "resources": words("r"), "verbs": words("v"), "resourceNames": words("n")})).await;
    assert_eq!(refused.code, 403, "{}", refused.text());
    assert!(
        refused.message().contains("in 1000000000000 ways"),
        "{}",
        refused.message()
    );
    let refused =
        send(json!({"apiGroups": words("g"), "resources": ["pods"], "verbs": ["get"]})).await;
    assert_eq!(refused.code, 403);
    let refused =
        send(json!({"apiGroups": words("g"), "resources": words("r")[..50], "verbs": ["get"]}))
            .await;
    assert_eq!(refused.code, 403);
    assert!(
        refused
            .message()
            .ends_with("and 49000 more that are not listed")
    );
    assert!(refused.bytes.len() <= MOST);
}

#[tokio::test]
async fn problems_of_custom_kinds_are_short() {
    let server = Server::new();
    let rule = json!({"rule": "self.size() > 3", "message": "m".repeat(2000)});
    let item = json!({"type": "string", "x-kubernetes-validations": [rule], "maxLength": 9});
    let definition = |properties: Value| {
        json!({
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}}}]},
        })
    };
    let bad: serde_json::Map<String, Value> =
        (0..60_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let code = check(
        &server,
        "a schema",
        ("POST", DEFINITIONS, JSON),
        definition(Value::Object(bad)).to_string(),
    )
    .await;
    assert!(matches!(code, 403 | 422), "{code}");
    let good = definition(json!({
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "texts": {"type": "array", "maxItems": 20_000, "items": item},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    }));
    let answer = server.post(DEFINITIONS, &good).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let path = "/apis/example.com/v1/namespaces/default/things";
    let thing = |field: &str, item: &str, count| {
        format!(
            "{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{{\"name\":\"t\"}},\"spec\":{{\"{field}\":{}}}}}",
            list(item, count)
        )
    };
    for (field, item, count) in [
        ("numbers", "\"\"", 500_000),
        ("texts", "\"a\"", 19_000),
        ("set", "\"a\"", 200_000),
    ] {
        let headers = [("content-type", JSON)];
        let answer = server
            .call("POST", path, &headers, thing(field, item, count))
            .await;
        assert_eq!(answer.code, 422, "{field}");
        assert!(
            answer.bytes.len() <= MOST,
            "{field}: {}",
            answer.bytes.len()
        );
    }
    let unknown = format!(
        "{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{{\"name\":\"t\"}},\"spec\":{{{}}}}}",
        fields("f", "1", 150_000)
    );
    let answer = server
        .call("POST", path, &[("content-type", JSON)], unknown)
        .await;
    let head: usize = answer.headers.values().map(http::HeaderValue::len).sum();
    assert!(
        answer.code == 201 && head <= MOST_HEADERS,
        "{} {head}",
        answer.code
    );
}

/// A Status contains the number of causes that it does not list.
#[tokio::test]
async fn the_last_cause_counts_the_others() {
    let server = Server::new();
    let finalizers: Vec<&str> = vec!["_"; 5000];
    let body = json!({"metadata": {"name": "c", "finalizers": finalizers}});
    let answer = server.post(CONFIG_MAPS, &body).await;
    assert_eq!(answer.code, 422);
    let status = answer.json();
    let causes = status["details"]["causes"].as_array().unwrap();
    let last = causes.last().unwrap()["message"].as_str().unwrap();
    assert!(
        last.starts_with("and ") && last.ends_with(" more that are not listed"),
        "{last}"
    );
}
