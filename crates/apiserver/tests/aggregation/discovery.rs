//! Discovery and OpenAPI documents with those of an aggregated API server.

use serde_json::{Value, json};

use crate::{API_SERVICES, FISH, start_available, until};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn names(groups: &Value, name: &str) -> Vec<String> {
    let groups = groups.as_array().unwrap().iter();
    let name = |group: &Value| group.pointer(name).unwrap().as_str().unwrap().to_owned();
    groups.map(name).collect()
}

#[tokio::test]
async fn the_group_is_discovered_by_its_priority() {
    let (server, _backend) = start_available().await;
    let groups = server.get("/apis").await.json()["groups"].clone();
    let found = names(&groups, "/name");
    assert_eq!(
        found[..3],
        ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    );
    assert_eq!(found.last().unwrap(), "fish.example.com");
    let group = server.get("/apis/fish.example.com").await.json();
    let version = json!({"groupVersion": "fish.example.com/v1", "version": "v1"});
    assert_eq!(group["kind"], "APIGroup");
    assert_eq!(
        (&group["versions"][0], &group["preferredVersion"]),
        (&version, &version)
    );
    let resources = server.get("/apis/fish.example.com/v1").await.json();
    assert_eq!(resources["resources"][0]["shortNames"], json!(["fi"]));

    let document = server.get_as("/apis", AGGREGATED).await.json();
    let found = names(&document["items"], "/metadata/name");
    assert_eq!(found.last().unwrap(), "fish.example.com");
    let version = &document["items"].as_array().unwrap().last().unwrap()["versions"][0];
    assert_eq!(
        (&version["version"], &version["freshness"]),
        (&json!("v1"), &json!("Current"))
    );
    let fish = &version["resources"][0];
    assert_eq!(fish["responseKind"]["kind"], "Fish");
    assert_eq!(fish["subresources"][0]["subresource"], "status");
}

#[tokio::test]
async fn openapi_v3_has_the_document_of_the_group() {
    let (server, backend) = start_available().await;
    let index = server.get("/openapi/v3").await.json();
    let entry = &index["paths"]["apis/fish.example.com/v1"];
    let url = entry["serverRelativeURL"].as_str().unwrap();
    assert_eq!(url, "/openapi/v3/apis/fish.example.com/v1?hash=1");
    assert!(index["paths"]["apis/apps/v1"].is_object());
    assert_eq!(server.get(url).await.json()["openapi"], "3.0.0");
    assert_eq!(
        backend.calls("/openapi/v3/apis/fish.example.com/v1").len(),
        1
    );
}

#[tokio::test]
async fn a_group_without_a_server_is_stale() {
    let (server, backend) = start_available().await;
    backend.answer("/apis/fish.example.com/v1", 500, &json!({}));
    let touched = r#"{"spec": {"service": {"port": 443}, "versionPriority": 11}}"#;
    let path = format!("{API_SERVICES}/v1.fish.example.com");
    server.patch(&path, crate::MERGE, touched).await;
    until("the stale version", async || {
        let document = server.get_as("/apis", AGGREGATED).await.json();
        let version = &document["items"].as_array()?.last()?["versions"][0];
        // What was known remains.
        assert_eq!(version["resources"][0]["resource"], "fish");
        (version["freshness"] == "Stale").then_some(())
    })
    .await;
    let groups = server.get("/apis").await.json()["groups"].clone();
    assert_eq!(names(&groups, "/name").last().unwrap(), "fish.example.com");
}

#[tokio::test]
async fn a_deleted_api_service_is_no_longer_served() {
    let (server, _backend) = start_available().await;
    assert_eq!(server.get(FISH).await.code, 200);
    let path = format!("{API_SERVICES}/v1.fish.example.com");
    assert_eq!(server.call("DELETE", &path, &[], "").await.code, 200);
    for path in [FISH, "/apis/fish.example.com", "/apis/fish.example.com/v1"] {
        assert_eq!(server.get(path).await.code, 404, "{path}");
    }
    let groups = server.get("/apis").await.json()["groups"].clone();
    assert!(!names(&groups, "/name").contains(&"fish.example.com".to_owned()));
    let index = server.get("/openapi/v3").await.json();
    assert!(index["paths"]["apis/fish.example.com/v1"].is_null());
}
