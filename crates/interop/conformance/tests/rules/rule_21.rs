//! Rule 21: the Accept header, tables, metadata-only responses, compression.

use std::io::Read as _;

use longshore_conformance::ApiTest;
use serde_json::{Value, json};

use crate::common::{config_map, items, names, pod, version};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// A test with two ConfigMaps, and the path of the collection.
async fn test() -> (ApiTest, String) {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    for name in ["a", "b"] {
        test.create(&maps, &config_map(name)).await;
    }
    (test, maps)
}

#[tokio::test]
async fn rule_21_accept_is_an_ordered_list() {
    let (test, maps) = test().await;
    for (accept, kind) in [
        ("", "ConfigMapList"),
        ("*/*", "ConfigMapList"),
        ("application/json", "ConfigMapList"),
        ("text/plain,application/json", "ConfigMapList"),
        (&format!("{TABLE},application/json"), "Table"),
        (&format!("application/json,{TABLE}"), "ConfigMapList"),
        (
            "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
            "ConfigMapList",
        ),
        (
            "application/json;as=Nothing;v=v1;g=meta.k8s.io,application/json",
            "ConfigMapList",
        ),
        (
            &format!("application/xml,{METADATA_LIST}"),
            "PartialObjectMetadataList",
        ),
        ("application/json;q=0.5", "ConfigMapList"),
        ("application/json; charset=utf-8", "ConfigMapList"),
    ] {
        let response = test.request("GET", &maps).accept(accept).send().await;
        assert_eq!(response.ok()["kind"], kind, "{accept}");
        assert_eq!(
            response.header("content-type"),
            "application/json",
            "{accept}"
        );
    }
}

#[tokio::test]
async fn rule_21_unsupported_formats_are_not_acceptable() {
    let (test, maps) = test().await;
    let one = format!("{maps}/a");
    for (path, accept) in [
        (&maps, "application/xml"),
        (&maps, "text/html"),
        (&maps, METADATA),
        (&one, METADATA_LIST),
        (&maps, "application/json;as=Nothing;v=v1;g=meta.k8s.io"),
        (&maps, "application/json;as=Table;v=v9;g=meta.k8s.io"),
    ] {
        let response = test.request("GET", path).accept(accept).send().await;
        response.refused(406, "NotAcceptable");
    }
}

#[tokio::test]
async fn rule_21_a_table_has_columns_and_rows() {
    let (test, maps) = test().await;
    let table = test.request("GET", &maps).accept(TABLE).send().await.ok();
    assert_eq!(
        (&table["kind"], &table["apiVersion"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"))
    );
    assert!(table["metadata"]["resourceVersion"].is_string());
    let columns = table["columnDefinitions"].as_array().unwrap();
    let headings: Vec<_> = columns
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(headings, ["Name", "Data", "Age"]);
    for column in columns {
        for field in ["name", "type", "format", "description"] {
            assert!(column[field].is_string(), "{column}");
        }
        assert!(column["priority"].is_number(), "{column}");
    }
    assert_eq!(
        (&columns[0]["format"], &columns[0]["type"]),
        (&json!("name"), &json!("string"))
    );
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, name) in rows.iter().zip(["a", "b"]) {
        let cells = row["cells"].as_array().unwrap();
        assert_eq!((&cells[0], &cells[1]), (&json!(name), &json!(1)));
        assert!(cells[2].is_string(), "{row}");
        let object = &row["object"];
        assert_eq!(object["kind"], "PartialObjectMetadata");
        assert_eq!(object["apiVersion"], "meta.k8s.io/v1");
        assert_eq!(object["metadata"]["name"], name);
        assert_eq!(object.get("data"), None);
    }
}

#[tokio::test]
async fn rule_21_table_rows_include_the_requested_objects() {
    let (test, maps) = test().await;
    let one = format!("{maps}/a");
    let whole = test.get(&one).await.ok();
    let row = async |query: &str| {
        let path = format!("{one}{query}");
        let table = test.request("GET", &path).accept(TABLE).send().await.ok();
        assert_eq!(table["rows"].as_array().unwrap().len(), 1);
        table["rows"][0]["object"].clone()
    };
    assert_eq!(row("").await["metadata"], whole["metadata"]);
    assert_eq!(
        row("?includeObject=Metadata").await["kind"],
        "PartialObjectMetadata"
    );
    assert_eq!(row("?includeObject=Object").await["data"], whole["data"]);
    assert_eq!(row("?includeObject=None").await, Value::Null);
    let path = format!("{one}?includeObject=Some");
    let response = test.request("GET", &path).accept(TABLE).send().await;
    assert!((400..500).contains(&response.code), "{}", response.text());
}

#[tokio::test]
async fn rule_21_tables_are_paginated_like_lists() {
    let (test, maps) = test().await;
    let path = format!("{maps}?limit=1");
    let first = test.request("GET", &path).accept(TABLE).send().await.ok();
    assert_eq!(first["rows"].as_array().unwrap().len(), 1);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let path = format!("{path}&continue={token}");
    let second = test.request("GET", &path).accept(TABLE).send().await.ok();
    assert_eq!(second["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn rule_21_only_the_first_table_of_a_watch_has_columns() {
    let (test, maps) = test().await;
    let path = format!("{maps}?watch=1");
    let mut watch = test.request("GET", &path).accept(TABLE).watch().await;
    let first = watch.event("ADDED").await;
    assert_eq!(first["kind"], "Table");
    assert_eq!(first["columnDefinitions"][0]["name"], "Name");
    assert_eq!(first["rows"].as_array().unwrap().len(), 1);
    let second = watch.event("ADDED").await;
    let columns = second["columnDefinitions"].as_array();
    assert!(columns.is_none_or(Vec::is_empty), "{second}");
    test.delete(&format!("{maps}/a")).await.ok();
    let gone = watch.event("DELETED").await;
    assert_eq!(gone["rows"][0]["cells"][0], "a");
    assert_eq!(gone["rows"][0]["object"]["metadata"]["name"], "a");
}

#[tokio::test]
async fn rule_21_metadata_only_lists_objects_and_watches() {
    let (test, maps) = test().await;
    let list = test
        .request("GET", &maps)
        .accept(METADATA_LIST)
        .send()
        .await
        .ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(items(&list), ["a", "b"]);
    assert!(list["metadata"]["resourceVersion"].is_string());
    assert_eq!(list["items"][0].get("data"), None);
    let one = test
        .request("GET", &format!("{maps}/a"))
        .accept(METADATA)
        .send()
        .await
        .ok();
    assert_eq!(one["kind"], "PartialObjectMetadata");
    assert_eq!(one["metadata"]["name"], "a");
    assert_eq!(one.get("data"), None);
    let path = format!("{maps}?watch=1&allowWatchBookmarks=true");
    let mut watch = test.request("GET", &path).accept(METADATA).watch().await;
    let both = [watch.event("ADDED").await, watch.event("ADDED").await];
    assert_eq!(both[0]["kind"], "PartialObjectMetadata");
    assert_eq!(both[0].get("data"), None);
    let mut both = names(&both);
    both.sort();
    assert_eq!(both, ["a", "b"]);
}

#[tokio::test]
async fn rule_21_writes_return_the_requested_format() {
    let (test, maps) = test().await;
    let request = test
        .request("POST", &maps)
        .accept(METADATA)
        .json(&config_map("c"));
    let made = request.send().await.is(201);
    assert_eq!(made["kind"], "PartialObjectMetadata");
    assert_eq!(made.get("data"), None);
    let request = test
        .request("POST", &maps)
        .accept(TABLE)
        .json(&config_map("d"));
    let made = request.send().await.is(201);
    assert_eq!(made["rows"][0]["cells"][0], "d");
    // Errors are always a Status.
    let request = test
        .request("POST", &maps)
        .accept(TABLE)
        .json(&config_map("d"));
    request.send().await.refused(409, "AlreadyExists");
}

#[tokio::test]
async fn rule_21_pods_have_the_kubectl_columns() {
    let test = ApiTest::start().await;
    let pods = test.path("v1", "pods");
    test.create(&pods, &pod("a")).await;
    let table = test.request("GET", &pods).accept(TABLE).send().await.ok();
    let columns = table["columnDefinitions"].as_array().unwrap();
    let shown = |priority: u32| {
        let of = columns
            .iter()
            .filter(|column| column["priority"] == priority);
        of.map(|column| column["name"].as_str().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(0), ["Name", "Ready", "Status", "Restarts", "Age"]);
    assert_eq!(
        shown(1),
        ["IP", "Node", "Nominated Node", "Readiness Gates"]
    );
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..3], [json!("a"), json!("0/1"), json!("Pending")]);
    assert_eq!(
        cells[5..],
        [
            json!("<none>"),
            json!("<none>"),
            json!("<none>"),
            json!("<none>")
        ]
    );
}

#[tokio::test]
async fn rule_21_large_responses_are_compressed_if_the_client_accepts_gzip() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let text = "x".repeat(150_000);
    let map = json!({"metadata": {"name": "a"}, "data": {"text": text}});
    test.create(&maps, &map).await;
    let plain = test.get(&maps).await;
    assert_eq!(plain.header("content-encoding"), "");
    let packed = test
        .request("GET", &maps)
        .header("accept-encoding", "gzip")
        .send()
        .await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.bytes.len() < 50_000, "{}", packed.bytes.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed.bytes[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    let unpacked: Value = serde_json::from_slice(&unpacked).unwrap();
    assert_eq!(
        version(&unpacked["items"][0]),
        version(&plain.json()["items"][0])
    );
    assert_eq!(unpacked["items"][0]["data"]["text"], text);
    // Small responses are not compressed.
    let small = test.path("v1", "secrets");
    let small = test
        .request("GET", &small)
        .header("accept-encoding", "gzip")
        .send()
        .await;
    assert_eq!(small.header("content-encoding"), "");
}

#[tokio::test]
async fn rule_21_responses_to_browsers_and_curl_are_indented() {
    let test = ApiTest::start().await;
    let maps = test.path("v1", "configmaps");
    let is_indented = async |path: String, agent: &str| {
        let request = test.request("GET", &path).header("user-agent", agent);
        let response = request.send().await;
        response.text().starts_with("{\n  \"")
    };
    for (query, agent, expected) in [
        ("", "x/1", false),
        ("", "curl/8", true),
        ("", "Mozilla/5.0", true),
        ("?pretty=true", "x/1", true),
        ("?pretty=1", "x/1", true),
        ("?pretty=false", "curl/8", false),
        ("?pretty=foo", "curl/8", false),
        ("?pretty=", "x/1", false),
    ] {
        for path in [maps.clone(), format!("{maps}/none"), "/api/v1".to_owned()] {
            let got = is_indented(format!("{path}{query}"), agent).await;
            assert_eq!(got, expected, "{path}{query} {agent}");
        }
    }
}
