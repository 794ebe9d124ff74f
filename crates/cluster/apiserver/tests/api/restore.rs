//! Snapshots over HTTP.

use serde_json::json;

use crate::common::{CONFIG_MAPS, Server};

const SNAPSHOTS: &str = "/longshore.dev/v1/snapshots";

fn config_map(name: &str) -> serde_json::Value {
    json!({"metadata": {"name": name}})
}

async fn names(server: &Server) -> Vec<String> {
    let list = server.get(CONFIG_MAPS).await.json();
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn clients_return_to_a_snapshot() {
    let server = Server::with_faults();
    assert_eq!(server.post(CONFIG_MAPS, &config_map("a")).await.code, 201);
    let taken = server.post(SNAPSHOTS, &json!({})).await;
    assert_eq!(taken.code, 201, "{}", taken.text());
    let taken = taken.json();
    let id = taken["id"].as_str().unwrap();
    let list = server.get(SNAPSHOTS).await.json();
    assert_eq!(list["items"], json!([taken]));

    server
        .call("DELETE", &format!("{CONFIG_MAPS}/a"), &[], "")
        .await;
    assert_eq!(server.post(CONFIG_MAPS, &config_map("b")).await.code, 201);
    let before = server.get(CONFIG_MAPS).await.json();
    let before = before["metadata"]["resourceVersion"].as_str().unwrap();
    let restore = format!("{SNAPSHOTS}/{id}/restore");
    let restored = server.post(&restore, &json!({})).await;
    assert_eq!(restored.json()["status"], "Success");
    assert_eq!(names(&server).await, ["a"]);
    let watch = format!("{CONFIG_MAPS}?watch=true&resourceVersion={before}");
    let expired = server.get(&watch).await.json();
    assert_eq!(
        (&expired["type"], &expired["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );

    let removed = server
        .call("DELETE", &format!("{SNAPSHOTS}/{id}"), &[], "")
        .await;
    assert_eq!(removed.json()["status"], "Success");
    let gone = server.post(&restore, &json!({})).await;
    assert_eq!(gone.code, 404);
    assert_eq!(gone.json()["details"]["kind"], "snapshots");
}

#[tokio::test]
async fn the_number_of_snapshots_is_limited() {
    let server = Server::with_faults();
    for _ in 0..100 {
        assert_eq!(server.post(SNAPSHOTS, &json!({})).await.code, 201);
    }
    let refused = server.post(SNAPSHOTS, &json!({})).await;
    assert_eq!(refused.code, 429);
    assert!(refused.text().contains("remove one"), "{}", refused.text());
    let removed = server
        .call("DELETE", &format!("{SNAPSHOTS}/1"), &[], "")
        .await;
    assert_eq!(removed.code, 200);
    assert_eq!(server.post(SNAPSHOTS, &json!({})).await.json()["id"], "101");
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let server = Server::with_faults();
    for (method, path, code) in [
        ("PUT", "", 405),
        ("GET", "/1", 405),
        ("GET", "/1/restore", 405),
        ("POST", "/x/restore", 404),
        ("POST", "/-1/restore", 404),
        ("DELETE", "/99999999999999999999", 404),
    ] {
        let answer = server
            .call(method, &format!("{SNAPSHOTS}{path}"), &[], "")
            .await;
        assert_eq!(answer.code, code, "{method} {path}: {}", answer.text());
    }
    let without = Server::new();
    assert_eq!(without.post(SNAPSHOTS, &json!({})).await.code, 404);
}
