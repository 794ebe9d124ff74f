//! Points 6 to 10: requests by path.

use futures::StreamExt;
use longshore::client::{Error, Patch};
use serde_json::json;

use crate::common::Here;

#[tokio::test]
async fn point_06_the_pool_is_unusable_after_close() {
    let here = Here::start().await;
    let proxy = here.cluster.proxy();
    for _ in 0..3 {
        proxy.get("/version", &[]).await.unwrap();
    }
    here.cluster.close();
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
async fn point_08_requests_by_path_and_refusals() {
    let here = Here::start().await;
    let (proxy, maps) = (here.cluster.proxy(), here.test.path("v1", "configmaps"));
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
async fn point_09_results_are_values_of_their_own() {
    let here = Here::start().await;
    let map = here.config_map("a").await;
    let mut raw = map.raw().unwrap();
    raw["data"]["key"] = "other".into();
    // An item is immutable: changing a copy of its text changes nothing.
    assert_eq!(map.raw().unwrap()["data"]["key"], "value");
}

#[tokio::test]
async fn point_10_watches_by_path() {
    let here = Here::start().await;
    let maps = here.test.path("v1", "configmaps");
    let (_, version) = here.test.list(&maps).await;
    let query = [
        ("resourceVersion", version.as_str()),
        ("fieldSelector", "metadata.name=b"),
    ];
    let watch = here.cluster.proxy().watch(&maps, &query).await.unwrap();
    let mut watch = std::pin::pin!(watch);
    here.config_map("a").await;
    here.config_map("b").await;
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["metadata"]["name"], "b");
}
