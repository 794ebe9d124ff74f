//! Operations other than the create of an object: delete, subresources, connections.

use serde_json::{Value, json};

use crate::{
    MERGE,
    common::{CONFIG_MAPS, PODS, Server},
    configure,
    hook::{Hook, patch},
};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

#[tokio::test]
async fn deletes_can_be_refused() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = |path: &str| hook.webhook(path, &["DELETE"], &["configmaps"]);
    configure(&server, "Mutating", "a", &[webhook("/m")]).await;
    configure(&server, "Validating", "a", &[webhook("/v")]).await;
    hook.on("/v", |request| {
        let kept = request["oldObject"]["metadata"]["name"] == "kept";
        json!({"allowed": !kept, "status": {"message": "keep it", "code": 403}})
    });
    for name in ["a", "kept"] {
        server.config_map(name).await;
    }
    let delete = async |path: String| server.call("DELETE", &path, &[], "").await;
    let deleted = delete(format!("{CONFIG_MAPS}/a?gracePeriodSeconds=5")).await;
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    assert_eq!(hook.paths(), ["/m", "/v"]);
    let request = &hook.calls()[1].request;
    assert_eq!(
        (&request["name"], &request["object"]),
        (&json!("a"), &Value::Null)
    );
    assert_eq!(request["operation"], "DELETE");
    assert_eq!(request["options"]["kind"], "DeleteOptions");
    assert_eq!(request["options"]["gracePeriodSeconds"], 5);
    let refused = delete(format!("{CONFIG_MAPS}/kept")).await;
    let message = r#"admission webhook "v.example.com" denied the request: keep it"#;
    assert_eq!((refused.code, &*refused.message()), (403, message));
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/kept")).await.code, 200);
    // An object that does not exist is not reviewed.
    hook.clear();
    assert_eq!(delete(format!("{CONFIG_MAPS}/none")).await.code, 404);
    assert!(hook.calls().is_empty());
}

#[tokio::test]
async fn each_object_of_a_collection_is_reviewed() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/v", &["DELETE"], &["configmaps"]);
    configure(&server, "Validating", "a", &[webhook]).await;
    for name in ["a", "b", "c"] {
        server.config_map(name).await;
    }
    hook.on(
        "/v",
        |request| json!({"allowed": request["oldObject"]["metadata"]["name"] != "b"}),
    );
    let refused = server.call("DELETE", CONFIG_MAPS, &[], "").await;
    assert_eq!(refused.code, 400, "{}", refused.text());
    let calls = hook.calls();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|call| call.request["name"].is_null()));
    let left = server.get(CONFIG_MAPS).await.json();
    let left: Vec<&str> = left["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(left, ["b", "c"]);
    hook.on("/v", |_| json!({"allowed": true}));
    let deleted = server.call("DELETE", CONFIG_MAPS, &[], "").await;
    assert_eq!(deleted.json()["items"].as_array().unwrap().len(), 2);
    assert_eq!(server.get(CONFIG_MAPS).await.json()["items"], json!([]));
}

#[tokio::test]
async fn status_and_scale_are_subresources() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let resources = ["deployments/status", "deployments/scale"];
    let webhook = |path: &str| hook.webhook(path, &["UPDATE"], &resources);
    configure(&server, "Mutating", "a", &[webhook("/m")]).await;
    configure(&server, "Validating", "a", &[webhook("/v")]).await;
    let labels = json!({"a": "b"});
    let containers = json!([{"name": "c", "image": "i"}]);
    let body = json!({"metadata": {"name": "d"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    }});
    assert_eq!(server.post(DEPLOYMENTS, &body).await.code, 201);
    assert!(hook.calls().is_empty());

    let path = format!("{DEPLOYMENTS}/d/status");
    let patched = server
        .patch(&path, MERGE, r#"{"status": {"replicas": 1}}"#)
        .await;
    assert_eq!(patched.code, 200, "{}", patched.text());
    let calls = hook.calls();
    assert_eq!(hook.paths(), ["/m", "/v"]);
    assert_eq!(calls[1].request["subResource"], "status");
    assert_eq!(calls[1].request["object"]["status"]["replicas"], 1);
    assert_eq!(calls[1].request["kind"]["kind"], "Deployment");

    let path = format!("{DEPLOYMENTS}/d/scale");
    hook.on("/m", |_| {
        patch(&json!([{"op": "replace", "path": "/spec/replicas", "value": 7}]))
    });
    let apply = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 4}});
    for (media_type, body) in [
        (MERGE, json!({"spec": {"replicas": 3}})),
        ("application/apply-patch+yaml", apply),
    ] {
        hook.clear();
        let path = format!("{path}?fieldManager=me&force=true");
        let path = if media_type == MERGE {
            path.replace("&force=true", "")
        } else {
            path
        };
        let scaled = server.patch(&path, media_type, &body.to_string()).await;
        assert_eq!(scaled.code, 200, "{}", scaled.text());
        assert_eq!(scaled.json()["spec"]["replicas"], 7);
        let calls = hook.calls();
        let (mutated, validated) = (&calls[0].request, &calls[1].request);
        assert_eq!(mutated["object"]["spec"], body["spec"]);
        assert_eq!(validated["object"]["spec"]["replicas"], 7);
        assert_eq!(validated["subResource"], "scale");
        assert_eq!(
            validated["kind"],
            json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
        );
        assert_eq!(validated["resource"]["group"], "apps");
        assert_eq!(validated["oldObject"]["kind"], "Scale");
    }
    let deployment = server.get(&format!("{DEPLOYMENTS}/d")).await.json();
    assert_eq!(deployment["spec"]["replicas"], 7);
}

#[tokio::test]
async fn bindings_evictions_and_tokens_are_creates_of_subresources() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let resources = ["pods/binding", "pods/eviction", "serviceaccounts/token"];
    let webhook = hook.webhook("/v", &["CREATE"], &resources);
    configure(&server, "Validating", "a", std::slice::from_ref(&webhook)).await;
    let binding_only = hook.webhook("/m", &["CREATE"], &["pods/binding"]);
    configure(&server, "Mutating", "a", &[binding_only]).await;
    hook.on("/m", |_| {
        patch(&json!([{"op": "replace", "path": "/target/name", "value": "other"}]))
    });
    server.pod("p", &["c"]).await;
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let bound = server.post(&format!("{PODS}/p/binding"), &binding).await;
    assert_eq!(bound.code, 201, "{}", bound.text());
    let pod = server.get(&format!("{PODS}/p")).await.json();
    assert_eq!(pod["spec"]["nodeName"], "other");
    let request = &hook.calls()[1].request;
    assert_eq!(request["kind"]["kind"], "Binding");
    assert_eq!(
        (&request["resource"]["resource"], &request["subResource"]),
        (&json!("pods"), &json!("binding"))
    );
    assert_eq!(request["object"]["target"]["name"], "other");

    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    assert_eq!(server.post(path, &json!({})).await.code, 201);
    hook.on(
        "/v",
        |_| json!({"allowed": false, "status": {"message": "stay", "code": 403}}),
    );
    let eviction = json!({"metadata": {"name": "p"}});
    let refused = server.post(&format!("{PODS}/p/eviction"), &eviction).await;
    assert_eq!(refused.code, 403, "{}", refused.text());
    let calls = hook.calls();
    let kinds: Vec<&Value> = calls
        .iter()
        .map(|call| &call.request["kind"]["kind"])
        .collect();
    assert_eq!(kinds, ["Binding", "Binding", "TokenRequest", "Eviction"]);
    assert_eq!(server.get(&format!("{PODS}/p")).await.code, 200);
    assert_eq!(server.post(path, &json!({})).await.code, 403);
}

#[tokio::test]
async fn sessions_are_connections() {
    let (server, hook) = (Server::new(), Hook::start().await);
    let webhook = hook.webhook("/v", &["CONNECT"], &["pods/exec", "pods/attach"]);
    configure(&server, "Validating", "a", &[webhook]).await;
    hook.on(
        "/v",
        |_| json!({"allowed": false, "status": {"message": "no", "code": 403}}),
    );
    server.pod("p", &["c"]).await;
    for (path, kind, object) in [
        (
            "exec?command=a&command=b&stdout=true&container=c",
            "PodExecOptions",
            json!({"stdout": true, "container": "c", "command": ["a", "b"]}),
        ),
        (
            "attach?stdin=true",
            "PodAttachOptions",
            json!({"stdin": true}),
        ),
    ] {
        hook.clear();
        let refused = server.get(&format!("{PODS}/p/{path}")).await;
        let message = r#"admission webhook "v.example.com" denied the request: no"#;
        assert_eq!((refused.code, &*refused.message()), (403, message));
        let request = &hook.calls()[0].request;
        assert_eq!(
            (&request["operation"], &request["name"]),
            (&json!("CONNECT"), &json!("p"))
        );
        assert_eq!(
            (&request["kind"]["kind"], &request["options"]),
            (&json!(kind), &Value::Null)
        );
        for (field, value) in object.as_object().unwrap() {
            assert_eq!(&request["object"][field], value);
        }
    }
    // Forwarded ports have no webhook here: the pod is not assigned to a node.
    let answer = server.get(&format!("{PODS}/p/portforward?ports=80")).await;
    assert_eq!(answer.code, 400, "{}", answer.text());
}
