//! Points 6 to 10: requests by path.

use futures::StreamExt;
use longshore::client::{Error, Patch};
use serde_json::json;

use crate::common::Fixture;

#[tokio::test]
async fn point_06_the_pool_is_unusable_after_close() {
    let fixture = Fixture::start().await;
    let proxy = fixture.cluster.proxy();
    for _ in 0..3 {
        proxy.get("/version", &[]).await.unwrap();
    }
    fixture.cluster.close();
    assert!(matches!(
        proxy.get("/version", &[]).await,
        Err(Error::Closed)
    ));
}

#[tokio::test]
async fn point_07_urls_are_joined() {
    let cluster = longshore::Cluster::from_url("http://localhost:8001/base/").unwrap();
    let proxy = cluster.proxy();
    let base = "http://localhost:8001/base";
    assert_eq!(proxy.urljoin(&["api", "v1"]), format!("{base}/api/v1"));
    assert_eq!(
        proxy.urljoin(&["/api/v1/", "nodes"]),
        format!("{base}/api/v1/nodes")
    );
    assert_eq!(proxy.urljoin(&["/api/v1"]), format!("{base}/api/v1"));
    assert_eq!(proxy.urljoin(&[]), base);
}

#[tokio::test]
async fn point_08_requests_by_path_and_errors() {
    let fixture = Fixture::start().await;
    let (proxy, maps) = (
        fixture.cluster.proxy(),
        fixture.test.path("v1", "configmaps"),
    );
    let data = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "1"}},
    });
    let made = proxy.post(&maps, &[], &data).await.unwrap();
    assert_eq!(made["metadata"]["name"], "a");
    let path = format!("{maps}/a");
    let merge = Patch::merge(json!({"data": {"k": "v"}}));
    assert_eq!(
        proxy.patch(&path, &[], &merge).await.unwrap()["data"]["k"],
        "v"
    );
    let operations = json!([{"op": "replace", "path": "/data/k", "value": "w"}]);
    let patched = proxy
        .patch(&path, &[], &Patch::json(operations))
        .await
        .unwrap();
    assert_eq!(patched["data"]["k"], "w");
    let list = proxy.get(&maps, &[("labelSelector", "x=1")]).await.unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    proxy.delete(&path, &[], None).await.unwrap();
    let gone = proxy.get(&path, &[]).await.unwrap_err();
    assert!(gone.is_not_found());
    assert_eq!(
        gone.to_string(),
        format!("GET {path}: configmaps \"a\" not found (404 NotFound)")
    );
    let refused = proxy
        .post(&maps, &[], &json!({"kind": "ConfigMap"}))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Some(422), "{refused}");
}

#[tokio::test]
async fn point_09_results_are_independent_copies() {
    let fixture = Fixture::start().await;
    let map = fixture.config_map("a").await;
    let mut raw = map.raw().unwrap();
    raw["data"]["key"] = "other".into();
    // Items are immutable: changing a copy of the data does not change the item.
    assert_eq!(map.raw().unwrap()["data"]["key"], "value");
}

#[tokio::test]
async fn point_10_watches_by_path() {
    let fixture = Fixture::start().await;
    let maps = fixture.test.path("v1", "configmaps");
    let (_, version) = fixture.test.list(&maps).await;
    let query = [
        ("resourceVersion", version.as_str()),
        ("fieldSelector", "metadata.name=b"),
    ];
    let watch = fixture.cluster.proxy().watch(&maps, &query).await.unwrap();
    let mut watch = std::pin::pin!(watch);
    fixture.config_map("a").await;
    fixture.config_map("b").await;
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["metadata"]["name"], "b");
}
