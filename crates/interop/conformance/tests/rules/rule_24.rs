//! Rule 24: OpenAPI v3 and v2.

use longshore_conformance::ApiTest;
use serde_json::{Value, json};

const V3: &str = "OpenAPI v3 requires Kubernetes 1.23";

#[tokio::test]
async fn rule_24_version_3_has_an_index_and_a_document_for_each_version() {
    let test = ApiTest::start().await;
    if test.skip_on_old(V3) {
        return;
    }
    let index = test.get("/openapi/v3").await.ok();
    let paths = index["paths"].as_object().unwrap();
    for name in [
        "api/v1",
        "apis/apps/v1",
        "apis/batch/v1",
        "apis/apiextensions.k8s.io/v1",
    ] {
        let url = paths[name]["serverRelativeURL"].as_str().unwrap();
        assert!(
            url.starts_with(&format!("/openapi/v3/{name}?hash=")),
            "{url}"
        );
        let document = test.get(url).await.ok();
        assert!(
            document["openapi"].as_str().unwrap().starts_with("3."),
            "{name}"
        );
        assert!(document["paths"].is_object() && document["components"]["schemas"].is_object());
    }
    let response = test.get("/openapi/v3/apis/none/v1").await;
    assert_eq!((response.code, response.text()), (404, String::new()));
}

#[tokio::test]
async fn rule_24_schemas_contain_their_kinds_and_merge_keys() {
    let test = ApiTest::start().await;
    if test.skip_on_old(V3) {
        return;
    }
    let document = test.get("/openapi/v3/api/v1").await.ok();
    let schemas = &document["components"]["schemas"];
    let pod = &schemas["io.k8s.api.core.v1.Pod"];
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    let kinds = pod["x-kubernetes-group-version-kind"].as_array().unwrap();
    assert!(kinds.contains(&kind), "{kinds:?}");
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let required = schemas["io.k8s.api.core.v1.Container"]["required"]
        .as_array()
        .unwrap();
    assert!(required.contains(&json!("name")), "{required:?}");
}

#[tokio::test]
async fn rule_24_patch_operations_list_field_validation() {
    let test = ApiTest::start().await;
    if test.skip_on_old(V3) {
        return;
    }
    let document = test.get("/openapi/v3/apis/apps/v1").await.ok();
    let path = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
    let patch = &path["patch"];
    let names: Vec<&Value> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    for name in ["fieldValidation", "fieldManager", "dryRun", "force"] {
        assert!(names.contains(&&json!(name)), "{name}: {names:?}");
    }
    let bodies = patch["requestBody"]["content"].as_object().unwrap();
    assert!(
        bodies.contains_key("application/apply-patch+yaml"),
        "{:?}",
        bodies.keys()
    );
    let tag = &patch["x-kubernetes-group-version-kind"];
    assert_eq!(
        *tag,
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
}

#[tokio::test]
async fn rule_24_version_2_in_protobuf() {
    let test = ApiTest::start().await;
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let response = test
        .request("GET", "/openapi/v2")
        .accept(accept)
        .send()
        .await;
    assert_eq!(response.code, 200, "{}", response.text());
    // The first field of a document is the Swagger version.
    assert!(
        response.bytes.starts_with(b"\x0a\x032.0"),
        "{:?}",
        &response.bytes[..16]
    );
}

#[tokio::test]
async fn rule_24_version_2_in_json() {
    let test = ApiTest::start().await;
    let response = test
        .request("GET", "/openapi/v2")
        .accept("application/json");
    let document = response.send().await.ok();
    assert_eq!(document["swagger"], "2.0");
    let definitions = &document["definitions"];
    let pod = &definitions["io.k8s.api.core.v1.Pod"];
    assert_eq!(
        pod["properties"]["spec"]["$ref"],
        "#/definitions/io.k8s.api.core.v1.PodSpec"
    );
    let quantity = &definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"];
    assert_eq!(quantity["type"], "string");
    let post = &document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"];
    let mut parameters = post["parameters"].as_array().unwrap().iter();
    let body = parameters.find(|parameter| parameter["in"] == "body");
    assert_eq!(
        body.unwrap()["schema"]["$ref"],
        "#/definitions/io.k8s.api.core.v1.Pod"
    );
    let refused = test.request("GET", "/openapi/v2").accept("text/html");
    assert_eq!(refused.send().await.code, 406);
}
