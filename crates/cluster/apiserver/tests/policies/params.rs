//! The parameters of policies.

use serde_json::{Value, json};

use crate::{
    GROUP, MERGE,
    common::{CONFIG_MAPS, Server},
    config_map, enforce, make,
};

fn spec(kind: Value) -> Value {
    json!({
        "matchConstraints": crate::rules("", "secrets", &["CREATE"]),
        "paramKind": kind,
        "validations": [{
            "expression": "params == null || size(object.metadata.name) <= int(params.data.limit)",
            "messageExpression": "'at most ' + params.data.limit",
        }],
    })
}

async fn create(server: &Server, name: &str) -> (u16, String) {
    let path = "/api/v1/namespaces/default/secrets?dryRun=All";
    let answer = server
        .post(path, &json!({"metadata": {"name": name}}))
        .await;
    let message = match answer.code {
        201 => String::new(),
        _ => answer
            .message()
            .split_once("request: ")
            .unwrap()
            .1
            .to_owned(),
    };
    (answer.code, message)
}

#[tokio::test]
async fn parameters_are_found_by_name_or_labels() {
    let server = Server::new();
    let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let by_name = json!({"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}});
    enforce(&server, "p", spec(kind), by_name).await;
    let missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(create(&server, "abc").await, (422, missing.into()));
    make(
        &server,
        CONFIG_MAPS,
        &config_map("limits", json!({"limit": "3"})),
    )
    .await;
    assert_eq!(create(&server, "abc").await, (201, String::new()));
    assert_eq!(create(&server, "abcd").await, (422, "at most 3".into()));
    let path = format!("{GROUP}/validatingadmissionpolicybindings/p-binding");
    let change = |reference: Value| json!({"spec": {"paramRef": reference}}).to_string();
    // All selected objects apply.
    let labels = json!({"name": null, "selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Allow"});
    assert_eq!(server.patch(&path, MERGE, &change(labels)).await.code, 200);
    assert_eq!(create(&server, "abcd").await, (201, String::new()));
    for (name, limit) in [("x", "6"), ("y", "5")] {
        let mut params = config_map(name, json!({"limit": limit}));
        params["metadata"]["labels"] = json!({"a": "b"});
        make(&server, CONFIG_MAPS, &params).await;
    }
    assert_eq!(create(&server, "abcde").await, (201, String::new()));
    assert_eq!(create(&server, "abcdef").await, (422, "at most 5".into()));
    // Without a reference, the policy has no parameters.
    assert_eq!(
        server.patch(&path, MERGE, &change(json!(null))).await.code,
        200
    );
    assert_eq!(create(&server, "abcdef").await, (201, String::new()));
}

#[tokio::test]
async fn parameters_in_another_namespace() {
    let server = Server::new();
    make(
        &server,
        "/api/v1/namespaces",
        &json!({"metadata": {"name": "other"}}),
    )
    .await;
    let path = "/api/v1/namespaces/other/configmaps";
    make(&server, path, &config_map("limits", json!({"limit": "3"}))).await;
    let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let bound = json!({"paramRef": {"name": "limits", "namespace": "other", "parameterNotFoundAction": "Deny"}});
    enforce(&server, "p", spec(kind), bound).await;
    assert_eq!(create(&server, "abcd").await, (422, "at most 3".into()));
}

#[tokio::test]
async fn custom_kinds_are_parameters() {
    let server = Server::new();
    let kind = json!({"apiVersion": "rules.example.com/v1", "kind": "Limit"});
    let bound = json!({"paramRef": {"name": "l", "parameterNotFoundAction": "Deny"}});
    enforce(&server, "p", spec(kind), bound).await;
    let unknown = "failed to configure policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'";
    assert_eq!(create(&server, "abcd").await, (422, unknown.into()));
    let definition = json!({"metadata": {"name": "limits.rules.example.com"}, "spec": {
        "group": "rules.example.com", "scope": "Cluster",
        "names": {"kind": "Limit", "plural": "limits", "singular": "limit"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
    }});
    make(
        &server,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition,
    )
    .await;
    let limit = json!({"apiVersion": "rules.example.com/v1", "kind": "Limit", "metadata": {"name": "l"}, "data": {"limit": "3"}});
    make(&server, "/apis/rules.example.com/v1/limits", &limit).await;
    assert_eq!(create(&server, "abcd").await, (422, "at most 3".into()));
    assert_eq!(create(&server, "abc").await, (201, String::new()));
}
