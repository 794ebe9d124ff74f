//! Rule 23: discovery, per version and aggregated.

use longshore_conformance::ApiTest;
use serde_json::{Value, json};

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED: &str = "aggregated discovery requires Kubernetes 1.26";

fn find<'a>(list: &'a Value, field: &str, value: &str) -> &'a Value {
    let items = list
        .as_array()
        .unwrap_or_else(|| panic!("not a list: {list}"));
    let found = items.iter().find(|item| item[field] == value);
    found.unwrap_or_else(|| panic!("no {value} in {list}"))
}

#[tokio::test]
async fn rule_23_core_versions_are_listed() {
    let test = ApiTest::start().await;
    let versions = test.get("/api").await.ok();
    assert_eq!(versions["kind"], "APIVersions");
    assert_eq!(versions["versions"], json!(["v1"]));
    assert!(
        versions["serverAddressByClientCIDRs"].is_array(),
        "{versions}"
    );
}

#[tokio::test]
async fn rule_23_groups_are_listed() {
    let test = ApiTest::start().await;
    let list = test.get("/apis").await.ok();
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("APIGroupList"), &json!("v1"))
    );
    for name in [
        "apps",
        "batch",
        "events.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "networking.k8s.io",
        "rbac.authorization.k8s.io",
        "policy",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "apiextensions.k8s.io",
    ] {
        let group = find(&list["groups"], "name", name);
        let preferred = &group["preferredVersion"];
        assert!(
            group["versions"].as_array().unwrap().contains(preferred),
            "{group}"
        );
        let version = preferred["version"].as_str().unwrap();
        assert_eq!(preferred["groupVersion"], format!("{name}/{version}"));
        let alone = test.get(&format!("/apis/{name}")).await.ok();
        assert_eq!(alone["kind"], "APIGroup");
        assert_eq!(
            (&alone["name"], &alone["versions"]),
            (&group["name"], &group["versions"])
        );
    }
    let none = test.get("/apis/none.example.com").await;
    assert_eq!(none.code, 404, "{}", none.text());
}

#[tokio::test]
async fn rule_23_resources_of_a_version_are_listed() {
    let test = ApiTest::start().await;
    let list = test.get("/api/v1").await.ok();
    assert_eq!(list["kind"], "APIResourceList");
    assert_eq!(list["groupVersion"], "v1");
    let pods = find(&list["resources"], "name", "pods");
    assert_eq!(
        (&pods["kind"], &pods["namespaced"]),
        (&json!("Pod"), &json!(true))
    );
    assert_eq!(pods["shortNames"], json!(["po"]));
    assert_eq!(pods["categories"], json!(["all"]));
    assert!(pods["singularName"].is_string());
    let mut verbs: Vec<_> = pods["verbs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verb| verb.as_str().unwrap())
        .collect();
    verbs.sort_unstable();
    let all = [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    assert_eq!(verbs, all);
    for (name, kind, namespaced) in [
        ("pods/status", "Pod", true),
        ("pods/log", "Pod", true),
        ("pods/binding", "Binding", true),
        ("namespaces", "Namespace", false),
        ("namespaces/finalize", "Namespace", false),
        ("nodes", "Node", false),
        ("configmaps", "ConfigMap", true),
        ("replicationcontrollers/scale", "Scale", true),
    ] {
        let resource = find(&list["resources"], "name", name);
        assert_eq!(resource["kind"], kind, "{resource}");
        assert_eq!(resource["namespaced"], namespaced, "{resource}");
    }
    let scale = find(&list["resources"], "name", "replicationcontrollers/scale");
    assert_eq!(
        (&scale["group"], &scale["version"]),
        (&json!("autoscaling"), &json!("v1"))
    );
    let apps = test.get("/apis/apps/v1").await.ok();
    assert_eq!(apps["groupVersion"], "apps/v1");
    let deployments = find(&apps["resources"], "name", "deployments");
    assert_eq!(deployments["shortNames"], json!(["deploy"]));
    for none in ["/apis/apps/v9", "/api/v9"] {
        assert_eq!(test.get(none).await.code, 404, "{none}");
    }
}

#[tokio::test]
async fn rule_23_aggregated_discovery_lists_all_groups() {
    let test = ApiTest::start().await;
    if test.skip_on_old(AGGREGATED) {
        return;
    }
    for (path, group, version, resource, singular) in [
        ("/api", "", "v1", "pods", "Pod"),
        ("/apis", "apps", "v1", "deployments", "Deployment"),
        ("/apis", "batch", "v1", "jobs", "Job"),
    ] {
        let request = test
            .request("GET", path)
            .accept(&format!("{V2},application/json"));
        let response = request.send().await;
        assert_eq!(response.header("content-type"), V2);
        let list = response.ok();
        assert_eq!(list["kind"], "APIGroupDiscoveryList");
        assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
        let groups = list["items"].as_array().unwrap();
        let name = |item: &Value| {
            item["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let found = groups.iter().find(|item| name(item) == group).unwrap();
        let found = find(&found["versions"], "version", version);
        assert_eq!(found["freshness"], "Current");
        let found = find(&found["resources"], "resource", resource);
        assert_eq!(found["scope"], "Namespaced");
        // Group and version are set only if they differ from the document's.
        let kind = |group, version, kind| json!({"group": group, "version": version, "kind": kind});
        assert_eq!(found["responseKind"], kind("", "", singular));
        assert!(found["singularResource"].is_string());
        assert!(found["verbs"].as_array().unwrap().contains(&json!("watch")));
        for subresource in found["subresources"].as_array().unwrap() {
            let shown = match subresource["subresource"].as_str().unwrap() {
                "scale" => kind("autoscaling", "v1", "Scale"),
                "eviction" => kind("policy", "v1", "Eviction"),
                "status" => kind("", "", singular),
                _ => subresource["responseKind"].clone(),
            };
            assert_eq!(subresource["responseKind"], shown);
            assert!(shown["kind"].is_string(), "{subresource}");
            assert!(subresource["verbs"].is_array(), "{subresource}");
        }
    }
}

#[tokio::test]
async fn rule_23_a_matching_etag_returns_not_modified() {
    let test = ApiTest::start().await;
    if test.skip_on_old(AGGREGATED) {
        return;
    }
    let first = test.request("GET", "/apis").accept(V2).send().await;
    let tag = first.header("etag");
    assert!(
        tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2,
        "{tag}"
    );
    let request = test
        .request("GET", "/apis")
        .accept(V2)
        .header("if-none-match", &tag);
    let same = request.send().await;
    assert_eq!((same.code, same.bytes.len()), (304, 0));
    let request = test
        .request("GET", "/apis")
        .accept(V2)
        .header("if-none-match", "\"other\"");
    assert_eq!(request.send().await.code, 200);
}

#[tokio::test]
async fn rule_23_plain_json_is_the_unaggregated_format() {
    let test = ApiTest::start().await;
    for accept in ["application/json", "*/*", ""] {
        let response = test.request("GET", "/apis").accept(accept).send().await;
        assert_eq!(response.header("content-type"), "application/json");
        assert_eq!(response.ok()["kind"], "APIGroupList");
    }
}

#[tokio::test]
async fn rule_23_the_root_lists_the_paths() {
    let test = ApiTest::start().await;
    let root = test.get("/").await.ok();
    let paths = root["paths"].as_array().unwrap();
    for path in [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/healthz",
        "/version",
    ] {
        assert!(paths.contains(&json!(path)), "{path}: {root}");
    }
}
