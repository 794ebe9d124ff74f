//! Changes by mutating webhooks: defaults, names, patches of each type, managed fields,
//! custom kinds.

use serde_json::{Value, json};

use crate::{
    MERGE,
    common::{CONFIG_MAPS, PODS, Server},
    config_map, configure,
    hook::{Hook, patch},
    with,
};

/// A server whose webhook adds `data.added` to ConfigMaps.
async fn adding() -> (Server, Hook) {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/add", &["CREATE", "UPDATE"], &["configmaps"]);
    configure(&server, "Mutating", "a", &[webhook]).await;
    hook.on("/add", |_| {
        patch(&json!([{"op": "add", "path": "/data/added", "value": "1"}]))
    });
    (server, hook)
}

fn owned(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["manager"] == manager);
    entry.map_or(Value::Null, |entry| entry["fieldsV1"]["f:data"].clone())
}

#[tokio::test]
async fn patches_of_each_type_are_mutated() {
    let (server, hook) = adding().await;
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a?fieldManager=me");
    for (media_type, body) in [
        (MERGE, r#"{"data": {"key": "2", "added": null}}"#),
        (
            "application/json-patch+json",
            r#"[{"op": "replace", "path": "/data/key", "value": "3"}]"#,
        ),
        (
            "application/strategic-merge-patch+json",
            r#"{"data": {"key": "4"}}"#,
        ),
    ] {
        hook.clear();
        let patched = server.patch(&path, media_type, body).await;
        assert_eq!(patched.code, 200, "{}", patched.text());
        let patched = patched.json();
        assert_eq!(patched["data"]["added"], "1", "{media_type}");
        let call = &hook.calls()[0].request;
        assert_eq!(call["operation"], "UPDATE");
        assert_eq!(call["options"]["kind"], "UpdateOptions");
        assert_eq!(call["object"]["data"]["key"], patched["data"]["key"]);
        assert_ne!(call["oldObject"]["data"]["key"], patched["data"]["key"]);
        // The changes of webhooks have no manager.
        assert_eq!(owned(&patched, "me")["f:added"], Value::Null);
        assert_eq!(owned(&patched, "me")["f:key"], json!({}));
    }
    let mut object = server.get(&path).await.json();
    object["data"] = json!({"key": "5"});
    let updated = server.put(&path, &object).await;
    assert_eq!(updated.code, 200, "{}", updated.text());
    assert_eq!(updated.json()["data"], json!({"added": "1", "key": "5"}));
    let stored = server.get(&path).await.json();
    assert_eq!(stored, updated.json());
}

#[tokio::test]
async fn an_applied_configuration_owns_only_its_fields() {
    let (server, hook) = adding().await;
    let apply = "application/apply-patch+yaml";
    let path = format!("{CONFIG_MAPS}/a?fieldManager=me");
    let text = config_map("a").to_string();
    let made = server.patch(&path, apply, &text).await;
    assert_eq!(made.code, 201, "{}", made.text());
    assert_eq!(made.json()["data"], json!({"added": "1", "key": "value"}));
    let own = json!({".": {}, "f:key": {}});
    assert_eq!(owned(&made.json(), "me")["f:added"], Value::Null);
    assert_eq!(owned(&made.json(), "me")["f:key"], own["f:key"]);
    let calls = hook.calls();
    assert_eq!(calls[0].request["operation"], "CREATE");
    assert_eq!(calls[0].request["options"]["kind"], "CreateOptions");
    hook.clear();
    let again = server.patch(&path, apply, &text).await;
    assert_eq!(again.code, 200, "{}", again.text());
    assert_eq!(hook.calls()[0].request["operation"], "UPDATE");
    assert_eq!(
        again.json()["metadata"]["resourceVersion"],
        made.json()["metadata"]["resourceVersion"],
        "nothing has changed"
    );
    assert_eq!(owned(&again.json(), "me"), owned(&made.json(), "me"));
}

#[tokio::test]
async fn a_field_taken_from_its_manager_by_a_webhook_is_kept_by_the_manager() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/set", &["CREATE"], &["configmaps"]);
    configure(&server, "Mutating", "a", &[webhook]).await;
    hook.on("/set", |_| {
        patch(&json!([{"op": "replace", "path": "/data/key", "value": "other"}]))
    });
    let path = format!("{CONFIG_MAPS}?fieldManager=me");
    let made = server.post(&path, &config_map("a")).await.json();
    assert_eq!(made["data"]["key"], "other");
    assert_eq!(owned(&made, "me")["f:key"], json!({}));
}

#[tokio::test]
async fn mutated_objects_get_defaults_and_are_validated() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/add", &["CREATE"], &["pods"]);
    configure(&server, "Mutating", "a", std::slice::from_ref(&webhook)).await;
    let check = hook.webhook("/check", &["CREATE"], &["pods"]);
    configure(&server, "Validating", "a", &[check]).await;
    hook.on("/add", |_| {
        patch(&json!([{
            "op": "add", "path": "/spec/initContainers", "value": [{"name": "init", "image": "i"}],
        }]))
    });
    let pod = server.pod("a", &["c"]).await;
    let init = &pod["spec"]["initContainers"][0];
    assert_eq!(init["terminationMessagePath"], "/dev/termination-log");
    let calls = hook.calls();
    assert_eq!(calls[1].path, "/check?timeout=10s");
    assert_eq!(calls[1].request["object"]["spec"], pod["spec"]);
    // The defaults of the API and the admission plugins of Kubernetes come first.
    let shown = &calls[0].request["object"]["spec"];
    for field in ["serviceAccountName", "tolerations", "priority", "dnsPolicy"] {
        assert_eq!(shown[field], pod["spec"][field], "{field}");
    }
    hook.on("/add", |_| {
        patch(&json!([{"op": "replace", "path": "/spec/containers/0/name", "value": "Not Valid"}]))
    });
    hook.clear();
    let body =
        json!({"metadata": {"name": "b"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let refused = server.post(PODS, &body).await;
    assert_eq!(refused.code, 422, "{}", refused.text());
    // Invalid objects do not reach validating webhooks. Objects whose name already exists do.
    assert_eq!(hook.paths(), ["/add"]);
    hook.clear();
    hook.on("/add", |_| json!({"allowed": true}));
    let body_of_a = with(body.clone(), json!({"metadata": {"name": "a"}}));
    assert_eq!(server.post(PODS, &body_of_a).await.code, 409);
    assert_eq!(hook.paths(), ["/add", "/check"]);
    hook.on("/add", |_| {
        patch(&json!([{"op": "replace", "path": "/spec/containers", "value": "text"}]))
    });
    let refused = server.post(PODS, &body).await;
    assert_eq!(
        (refused.code, &refused.json()["reason"]),
        (500, &json!("InternalError"))
    );
}

#[tokio::test]
async fn updates_are_shown_with_their_defaults() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/m", &["UPDATE"], &["services"]);
    configure(&server, "Mutating", "a", &[webhook]).await;
    let path = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let made = server.post(path, &service).await;
    assert_eq!(made.code, 201, "{}", made.text());
    let updated = server.put(&format!("{path}/s"), &service).await;
    assert_eq!(updated.code, 200, "{}", updated.text());
    let request = &hook.calls()[0].request;
    assert_eq!(request["object"]["spec"]["ports"][0]["protocol"], "TCP");
    assert_eq!(request["oldObject"], made.json());
}

#[tokio::test]
async fn names_are_generated_after_mutation() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/m", &["CREATE"], &["configmaps"]);
    let check = hook.webhook("/v", &["CREATE"], &["configmaps"]);
    configure(&server, "Mutating", "a", &[webhook]).await;
    configure(&server, "Validating", "a", &[check]).await;
    let body = json!({"metadata": {"generateName": "x-"}});
    let made = server.post(CONFIG_MAPS, &body).await;
    assert_eq!(made.code, 201, "{}", made.text());
    let made = made.json();
    let calls = hook.calls();
    let (mutated, validated) = (&calls[0].request, &calls[1].request);
    assert_eq!(mutated["name"], Value::Null);
    assert_eq!(mutated["object"]["metadata"]["name"], Value::Null);
    assert_eq!(mutated["object"]["metadata"]["uid"], Value::Null);
    for field in ["name", "uid"] {
        assert_eq!(
            validated["object"]["metadata"][field],
            made["metadata"][field]
        );
    }
    assert!(made["metadata"]["name"].as_str().unwrap().starts_with("x-"));
}

#[tokio::test]
async fn custom_objects_are_mutated_and_pruned() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let schema = |extra: Value| {
        let mut properties =
            json!({"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}});
        properties
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": properties},
        }}})
    };
    let definition = json!({
        "metadata": {"name": "ships.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema(json!({}))},
                {"name": "v2", "served": true, "storage": false, "schema": schema(json!({}))},
            ],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(server.post(path, &definition).await.code, 201);
    // The rule names v2 only, and the request is for v1.
    let mut webhook = hook.webhook("/m", &["CREATE", "UPDATE"], &["ships"]);
    webhook["rules"][0]["apiVersions"] = json!(["v2"]);
    configure(&server, "Mutating", "a", std::slice::from_ref(&webhook)).await;
    hook.on("/m", |_| {
        patch(&json!([
            {"op": "add", "path": "/spec/size", "value": 3},
            {"op": "add", "path": "/spec/unknown", "value": 1},
        ]))
    });
    let ships = "/apis/example.com/v1/namespaces/default/ships";
    let ship = json!({"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "a"}, "spec": {}});
    let made = server.post(ships, &ship).await;
    assert_eq!(made.code, 201, "{}", made.text());
    assert_eq!(made.json()["apiVersion"], "example.com/v1");
    assert_eq!(made.json()["spec"], json!({"color": "red", "size": 3}));
    let call = &hook.calls()[0].request;
    assert_eq!(call["kind"]["version"], "v2");
    assert_eq!(call["object"]["apiVersion"], "example.com/v2");
    assert_eq!(call["requestKind"]["version"], "v1");
    assert_eq!(call["requestResource"]["version"], "v1");
    let path = format!("{ships}/a");
    let patched = server.patch(&path, MERGE, r#"{"spec": {"size": 1}}"#).await;
    assert_eq!(patched.json()["spec"]["size"], 3, "{}", patched.text());
}
