//! Discovery and OpenAPI documents that include an aggregated API server's.

use serde_json::{Value, json};

use crate::{API_SERVICES, FISH, SLICES, start_available, until};

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
async fn openapi_v2_has_the_definitions_of_the_group() {
    let (server, backend) = start_available().await;
    let before = server.get("/openapi/v2").await.json();
    assert!(before["definitions"]["com.example.fish.v1.Fish"].is_null());
    let fish = |meta: &str| {
        json!({
            "paths": {
                "/apis/fish.example.com/v1/fish": {"get": {"responses": {"200": {
                    "schema": {"$ref": "#/definitions/com.example.fish.v1.Fish"}}}}},
                "/apis/": {"get": {"responses": {"200": {
                    "schema": {"$ref": "#/definitions/elsewhere"}}}}},
            },
            "definitions": {
                "com.example.fish.v1.Fish": {"type": "object", "properties": {
                    "metadata": {"$ref": format!("#/definitions/{meta}")}}},
                meta: {"type": "object", "description": "Of fish."},
                "elsewhere": {"type": "object"},
            },
        })
    };
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    backend.answer("/openapi/v2", 200, &fish(meta));
    // Another check of the server.
    let path = format!("{SLICES}/backend-a");
    let touched = r#"{"metadata": {"labels": {"touched": "a"}}}"#;
    server.patch(&path, crate::MERGE, touched).await;
    let document = until("the definition", async || {
        let document = server.get("/openapi/v2").await.json();
        (!document["definitions"]["com.example.fish.v1.Fish"].is_null()).then_some(document)
    })
    .await;
    let definitions = &document["definitions"];
    let reference = "/com.example.fish.v1.Fish/properties/metadata/$ref";
    let renamed = format!("{meta}_v2");
    assert_eq!(
        definitions.pointer(reference).unwrap(),
        &json!(format!("#/definitions/{renamed}"))
    );
    assert_eq!(definitions[renamed.as_str()]["description"], "Of fish.");
    assert_eq!(definitions[meta], before["definitions"][meta]);
    assert!(definitions["elsewhere"].is_null());
    assert!(document["paths"]["/apis/fish.example.com/v1/fish"].is_object());
    assert_eq!(document["paths"]["/apis/"], before["paths"]["/apis/"]);
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let protobuf = server.get_as("/openapi/v2", protobuf).await;
    assert_eq!(protobuf.code, 200);
    let name = b"com.example.fish.v1.Fish";
    assert!(protobuf.bytes.windows(name.len()).any(|part| part == name));

    // The APIService ends, and so do its definitions.
    let path = format!("{API_SERVICES}/v1.fish.example.com");
    server.call("DELETE", &path, &[], "").await;
    let after = server.get("/openapi/v2").await.json();
    assert_eq!(after, before);
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
        // The previous documents remain.
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
