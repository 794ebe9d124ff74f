//! Lists: pages, versions, formats, compression.

use std::io::Read as _;

use crate::common::{CONFIG_MAPS, Server, TABLE, lines};
use serde_json::{Value, json};

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn pages_are_a_consistent_snapshot() {
    let server = Server::new();
    for name in ["a", "b", "c"] {
        server.config_map(name).await;
    }
    let first = server.get(&format!("{CONFIG_MAPS}?limit=2")).await;
    assert_eq!(
        first.header("content-length"),
        "",
        "the server's transport adds it"
    );
    let first = first.json();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    server.config_map("bb").await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = server
        .get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"))
        .await
        .json();
    assert_eq!(names(&rest), ["c"]);
    assert_eq!(
        rest["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    assert_eq!(rest["metadata"].get("continue"), None);

    let garbage = server.get(&format!("{CONFIG_MAPS}?continue=garbage")).await;
    assert_eq!(garbage.code, 400);
    server.engine.expire_history().await;
    let expired = server
        .get(&format!("{CONFIG_MAPS}?limit=2&continue={token}"))
        .await;
    assert_eq!(
        (expired.code, expired.json()["reason"].clone()),
        (410, json!("Expired"))
    );
    assert!(expired.json()["metadata"]["continue"].is_string());
}

#[tokio::test]
async fn versions_and_selectors() {
    let server = Server::new();
    server.config_map("a").await;
    let labelled = json!({"metadata": {"name": "b", "labels": {"app": "web"}}});
    server.post(CONFIG_MAPS, &labelled).await;
    let list = |query: &'static str| {
        let server = &server;
        async move { server.get(&format!("{CONFIG_MAPS}?{query}")).await }
    };
    assert_eq!(names(&list("labelSelector=app%3Dweb").await.json()), ["b"]);
    assert_eq!(names(&list("labelSelector=%21app").await.json()), ["a"]);
    assert_eq!(
        names(&list("fieldSelector=metadata.name%3Da").await.json()),
        ["a"]
    );
    assert_eq!(list("fieldSelector=spec.colour%3Da").await.code, 400);
    assert_eq!(list("labelSelector=a+in+b").await.code, 400);
    let future = list("resourceVersion=99999").await;
    assert_eq!(future.code, 504, "{}", future.text());
    assert_eq!(future.header("retry-after"), "1");
    assert_eq!(
        future.json()["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
    assert_eq!(list("resourceVersionMatch=Exact").await.code, 422);
    assert_eq!(
        server.get("/api/v1/configmaps").await.json()["kind"],
        "ConfigMapList"
    );
}

#[tokio::test]
async fn tables() {
    let server = Server::new();
    server.config_map("a").await;
    server.pod("p", &["c", "d"]).await;
    let mut shown = Vec::new();
    for kind in [
        "configmaps",
        "pods",
        "namespaces",
        "services",
        "jobs",
        "nodes",
    ] {
        let path = match kind {
            "jobs" => "/apis/batch/v1/jobs".to_owned(),
            "namespaces" | "nodes" => format!("/api/v1/{kind}"),
            _ => format!("/api/v1/namespaces/default/{kind}"),
        };
        let table = server.get_as(&path, TABLE).await.json();
        assert_eq!(
            (&table["kind"], &table["apiVersion"]),
            (&json!("Table"), &json!("meta.k8s.io/v1"))
        );
        shown.push(format!("{kind}\n{}", lines(&table, true)));
    }
    insta::with_settings!({filters => vec![(r"\b\d+y\b", "[age]"), (r"\b127\.\d+\.\d+\.\d+\b", "[address]")]}, {
        insta::assert_snapshot!(shown.join("\n\n"));
    });
}

#[tokio::test]
async fn rows_include_the_requested_object() {
    let server = Server::new();
    let made = server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    let row = |query: &'static str| {
        let (server, path) = (&server, &path);
        async move {
            let table = server.get_as(&format!("{path}{query}"), TABLE).await.json();
            assert_eq!(
                table["metadata"]["resourceVersion"],
                made_version(server, path).await
            );
            table["rows"][0]["object"].clone()
        }
    };
    let metadata = row("").await;
    assert_eq!(metadata["kind"], "PartialObjectMetadata");
    assert_eq!(metadata["metadata"], made["metadata"]);
    assert_eq!(metadata.get("data"), None);
    assert_eq!(row("?includeObject=Object").await, made);
    assert_eq!(row("?includeObject=None").await, Value::Null);
    assert_eq!(
        server
            .get_as(&format!("{path}?includeObject=Some"), TABLE)
            .await
            .code,
        400
    );
}

async fn made_version(server: &Server, path: &str) -> Value {
    server.get(path).await.json()["metadata"]["resourceVersion"].clone()
}

#[tokio::test]
async fn metadata_alone() {
    let server = Server::new();
    server.config_map("a").await;
    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = server.get_as(CONFIG_MAPS, list).await.json();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!(names(&list), ["a"]);
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    assert_eq!(server.get_as(CONFIG_MAPS, one).await.code, 406);
    let one = server.get_as(&format!("{CONFIG_MAPS}/a"), one).await.json();
    assert_eq!(
        (&one["kind"], one.get("data")),
        (&json!("PartialObjectMetadata"), None)
    );
}

#[tokio::test]
async fn encodings() {
    let server = Server::new();
    server.config_map("a").await;
    let path = format!("{CONFIG_MAPS}/a");
    assert_eq!(
        server
            .get_as(&path, "application/vnd.kubernetes.protobuf")
            .await
            .code,
        406
    );
    let both = "application/vnd.kubernetes.protobuf,application/json";
    assert_eq!(
        server.get_as(&path, both).await.header("content-type"),
        "application/json"
    );
    let yaml = server.get_as(&path, "application/yaml").await;
    assert_eq!(yaml.header("content-type"), "application/yaml");
    assert!(
        yaml.text().contains("\nkind: ConfigMap\n"),
        "{}",
        yaml.text()
    );
}

#[tokio::test]
async fn large_lists_are_compressed_for_clients_that_accept_it() {
    let server = Server::new();
    let data = "x".repeat(50_000);
    for name in ["a", "b", "c"] {
        let body = json!({"metadata": {"name": name}, "data": {"text": data}});
        assert_eq!(server.post(CONFIG_MAPS, &body).await.code, 201);
    }
    let plain = server.get(CONFIG_MAPS).await;
    assert_eq!(plain.header("content-encoding"), "");
    let packed = server
        .call("GET", CONFIG_MAPS, &[("accept-encoding", "gzip")], "")
        .await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.bytes.len() < 20_000, "{}", packed.bytes.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed.bytes[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, plain.bytes);
    let small = server
        .call(
            "GET",
            &format!("{CONFIG_MAPS}?limit=1"),
            &[("accept-encoding", "gzip")],
            "",
        )
        .await;
    assert_eq!(small.header("content-encoding"), "");
}
