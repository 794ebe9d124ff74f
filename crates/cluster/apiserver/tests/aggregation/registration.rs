//! The APIServices of custom groups.

use serde_json::{Value, json};

use crate::{API_SERVICES, MERGE, condition, create, server, until};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn version(name: &str, is_served: bool) -> Value {
    json!({"name": name, "served": is_served, "storage": name == "v1",
        "schema": {"openAPIV3Schema": {"type": "object"}}})
}

#[tokio::test]
async fn each_served_version_of_a_definition_has_an_api_service() {
    let server = server();
    let definition = json!({
        "metadata": {"name": "ships.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "ships", "kind": "Ship"},
            "versions": [version("v1", true), version("v2", true)]},
    });
    create(&server, DEFINITIONS, &definition).await;
    let exists = async |name: &str| server.get(&format!("{API_SERVICES}/{name}")).await.code == 200;
    for name in ["v1.example.com", "v2.example.com"] {
        until(name, async || exists(name).await.then_some(())).await;
    }
    let made = server
        .get(&format!("{API_SERVICES}/v1.example.com"))
        .await
        .json();
    let labels = json!({"kube-aggregator.kubernetes.io/automanaged": "true"});
    assert_eq!(made["metadata"]["labels"], labels);
    let spec = json!({"group": "example.com", "version": "v1",
        "groupPriorityMinimum": 1000, "versionPriority": 100});
    assert_eq!(made["spec"], spec);
    let available = condition(&server, "v1.example.com").await.unwrap();
    assert_eq!(available["reason"], "Local");

    // A deleted APIService is created again, and a changed APIService gets its spec back.
    let path = format!("{API_SERVICES}/v1.example.com");
    assert_eq!(server.call("DELETE", &path, &[], "").await.code, 200);
    until("the APIService", async || {
        exists("v1.example.com").await.then_some(())
    })
    .await;
    server
        .patch(&path, MERGE, r#"{"spec": {"versionPriority": 7}}"#)
        .await;
    until("the spec", async || {
        (server.get(&path).await.json()["spec"] == spec).then_some(())
    })
    .await;

    let only = json!({"spec": {"versions": [version("v1", true), version("v2", false)]}});
    let path = format!("{DEFINITIONS}/ships.example.com");
    server.patch(&path, MERGE, &only.to_string()).await;
    let is_gone = async |name: &str| (!exists(name).await).then_some(());
    until("the end of v2", async || is_gone("v2.example.com").await).await;
    assert!(exists("v1.example.com").await);
    server.call("DELETE", &path, &[], "").await;
    until("the end of v1", async || is_gone("v1.example.com").await).await;
}
