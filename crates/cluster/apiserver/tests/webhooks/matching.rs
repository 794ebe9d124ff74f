//! The webhooks that a request matches: selectors, match policies, match conditions.

use serde_json::json;

use crate::{
    MERGE,
    common::{CONFIG_MAPS, Server},
    config_map, configure,
    hook::Hook,
    with,
};

#[tokio::test]
async fn namespaces_are_selected_by_their_labels() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/v", &["*"], &["configmaps", "namespaces", "nodes"]);
    let selector = json!({"matchExpressions": [
        {"key": "hooks", "operator": "NotIn", "values": ["off"]},
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]},
    ]});
    let webhook = with(webhook, json!({"namespaceSelector": selector}));
    configure(&server, "Validating", "a", &[webhook]).await;
    server.config_map("a").await;
    assert!(hook.calls().is_empty());
    let namespace =
        |name: &str, value: &str| json!({"metadata": {"name": name, "labels": {"hooks": value}}});
    for (name, value, calls) in [("on", "on", 2), ("off", "off", 0)] {
        hook.clear();
        let made = server
            .post("/api/v1/namespaces", &namespace(name, value))
            .await;
        assert_eq!(made.code, 201, "{}", made.text());
        let path = format!("/api/v1/namespaces/{name}/configmaps");
        assert_eq!(server.post(&path, &config_map("a")).await.code, 201);
        assert_eq!(hook.calls().len(), calls, "{name}");
    }
    // Other cluster-scoped objects are always selected.
    hook.clear();
    let node = json!({"metadata": {"name": "n"}});
    assert_eq!(server.post("/api/v1/nodes", &node).await.code, 201);
    assert_eq!(hook.calls().len(), 1);
    assert_eq!(hook.calls()[0].request["namespace"], json!(null));
}

#[tokio::test]
async fn objects_are_selected_before_or_after_the_change() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/v", &["*"], &["configmaps"]);
    let webhook = with(
        webhook,
        json!({"objectSelector": {"matchLabels": {"a": "b"}}}),
    );
    configure(&server, "Validating", "a", &[webhook]).await;
    server.config_map("x").await;
    let path = format!("{CONFIG_MAPS}/x");
    for (labels, calls) in [
        (json!({"a": "c"}), 0),
        (json!({"a": "b"}), 1),
        (json!({"a": null}), 1),
        (json!({"c": "d"}), 0),
    ] {
        hook.clear();
        let patch = json!({"metadata": {"labels": labels}}).to_string();
        assert_eq!(server.patch(&path, MERGE, &patch).await.code, 200);
        assert_eq!(hook.calls().len(), calls, "{labels}");
    }
}

#[tokio::test]
async fn rules_for_other_versions_match_unless_they_are_exact() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = |path: &str, policy: &str| {
        let mut webhook = hook.webhook(path, &["CREATE"], &["events"]);
        webhook["rules"][0]["apiGroups"] = json!(["events.k8s.io"]);
        with(webhook, json!({"matchPolicy": policy}))
    };
    let webhooks = [
        webhook("/exact", "Exact"),
        webhook("/equivalent", "Equivalent"),
    ];
    configure(&server, "Validating", "a", &webhooks).await;
    let event = json!({
        "metadata": {"name": "e"}, "reason": "r", "message": "hello",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
    });
    let made = server
        .post("/api/v1/namespaces/default/events", &event)
        .await;
    assert_eq!(made.code, 201, "{}", made.text());
    assert_eq!(hook.paths(), ["/equivalent"]);
    let request = &hook.calls()[0].request;
    assert_eq!(request["resource"]["group"], "events.k8s.io");
    assert_eq!(request["requestResource"]["group"], "");
    assert_eq!(request["object"]["apiVersion"], "events.k8s.io/v1");
    assert_eq!(request["object"]["note"], "hello");
}

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

#[tokio::test]
async fn match_conditions_decide_about_calls() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = |expression: &str| {
        let conditions = json!([{"name": "one", "expression": expression}]);
        let fields = json!({"matchConditions": conditions});
        with(hook.webhook("/v", &["*"], &["configmaps"]), fields)
    };
    let expressions = [
        ("a", "object.metadata.name == 'a'", true),
        ("b", "object.metadata.name == 'a'", false),
        (
            "c",
            "request.operation == 'CREATE' && oldObject == null",
            true,
        ),
        ("d", "'system:masters' in request.userInfo.groups", true),
        ("e", "request.resource.group == 'apps'", false),
    ];
    for (name, expression, called) in expressions {
        configure(&server, "Validating", name, &[webhook(expression)]).await;
        let before = hook.calls().len();
        server.config_map(name).await;
        assert_eq!(hook.calls().len() > before, called, "{expression}");
        let path = format!("{VALIDATING}/{name}");
        assert_eq!(server.call("DELETE", &path, &[], "").await.code, 200);
    }
}

#[tokio::test]
async fn match_conditions_without_a_value_follow_the_failure_policy() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = |policy: &str| {
        let conditions = json!([{"name": "one", "expression": "object.data.missing == 'x'"}]);
        let fields = json!({"failurePolicy": policy, "matchConditions": conditions});
        with(hook.webhook("/v", &["*"], &["configmaps"]), fields)
    };
    configure(&server, "Validating", "ignore", &[webhook("Ignore")]).await;
    server.config_map("a").await;
    assert!(hook.calls().is_empty());
    configure(&server, "Validating", "fail", &[webhook("Fail")]).await;
    let refused = server.post(CONFIG_MAPS, &config_map("b")).await;
    assert_eq!(refused.code, 403);
    let text = "configmaps \"b\" is forbidden: expression 'object.data.missing == 'x'' resulted in error: no such key: ";
    assert!(refused.message().starts_with(text), "{}", refused.message());
}
