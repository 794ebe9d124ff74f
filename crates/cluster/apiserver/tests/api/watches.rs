//! Watches: one JSON event per line, bookmarks, initial events, ends.

use crate::common::{CONFIG_MAPS, Server, TABLE};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use longshore_apiserver::Body;
use serde_json::{Value, json};

/// Reads a stream event by event.
pub(crate) struct Lines {
    body: Body,
    buffer: Vec<u8>,
}

impl Lines {
    pub(crate) async fn open(server: &Server, path: &str, accept: &str) -> Self {
        let request = Request::get(path)
            .header("accept", accept)
            .body(Full::default())
            .unwrap();
        let response = server.send(request).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/json");
        Self {
            body: response.into_body(),
            buffer: Vec::new(),
        }
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.buffer.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// All text until the end of the stream; an error if it breaks.
    pub(crate) async fn rest(mut self) -> Result<String, String> {
        while let Some(frame) = self.body.frame().await {
            let text = String::from_utf8_lossy(&self.buffer).into_owned();
            let frame = frame.map_err(|_| text)?;
            self.buffer.extend_from_slice(&frame.into_data().unwrap());
        }
        Ok(String::from_utf8_lossy(&self.buffer).into_owned())
    }

    /// The type of the next event and the name of its object.
    pub(crate) async fn brief(&mut self) -> String {
        let event = self.next().await.unwrap();
        let word = event["type"].as_str().unwrap();
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
        format!("{word} {name}")
    }
}

#[tokio::test]
async fn a_watch_sends_the_state_then_changes() {
    let server = Server::new();
    server.config_map("a").await;
    let mut watch = Lines::open(
        &server,
        &format!("{CONFIG_MAPS}?watch=true"),
        "application/json;stream=watch",
    )
    .await;
    assert_eq!(watch.brief().await, "ADDED a");
    server.config_map("b").await;
    assert_eq!(watch.brief().await, "ADDED b");
    let path = format!("{CONFIG_MAPS}/b");
    server
        .patch(
            &path,
            "application/merge-patch+json",
            r#"{"data":{"x":"y"}}"#,
        )
        .await;
    assert_eq!(watch.brief().await, "MODIFIED b");
    server.call("DELETE", &path, &[], "").await;
    assert_eq!(watch.brief().await, "DELETED b");
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let server = Server::new();
    server.config_map("a").await;
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Lines::open(&server, &format!("{CONFIG_MAPS}?{query}"), "*/*").await;
    assert_eq!(watch.brief().await, "ADDED a");
    let end = watch.next().await.unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(end["object"]["kind"], "ConfigMap");
    assert_eq!(
        end["object"]["metadata"]["annotations"],
        json!({"k8s.io/initial-events-end": "true"})
    );
    assert_eq!(
        end["object"]["metadata"]["resourceVersion"],
        server.engine.revision().to_string()
    );
    let refused = server
        .get(&format!("{CONFIG_MAPS}?watch=true&sendInitialEvents=true"))
        .await;
    assert_eq!(refused.code, 422);
}

#[tokio::test]
async fn too_old_a_version_is_an_error_event() {
    let server = Server::new();
    server.config_map("a").await;
    server.config_map("b").await;
    server.engine.expire_history().await;
    let mut watch = Lines::open(
        &server,
        &format!("{CONFIG_MAPS}?watch=1&resourceVersion=1"),
        "*/*",
    )
    .await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["type"], "ERROR");
    assert_eq!(
        (&event["object"]["code"], &event["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_watch_ends_at_the_clients_timeout() {
    let server = Server::new();
    server.config_map("a").await;
    let query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=1";
    let mut watch = Lines::open(&server, &format!("{CONFIG_MAPS}?{query}"), "*/*").await;
    assert_eq!(watch.brief().await, "ADDED a");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn tables_name_their_columns_once() {
    let server = Server::new();
    server.config_map("a").await;
    server.config_map("b").await;
    let mut watch = Lines::open(&server, &format!("{CONFIG_MAPS}?watch=true"), TABLE).await;
    let first = watch.next().await.unwrap();
    assert_eq!(first["object"]["kind"], "Table");
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(first["object"]["rows"][0]["cells"][0], "a");
    let second = watch.next().await.unwrap();
    assert_eq!(second["object"]["columnDefinitions"], Value::Null);
    assert_eq!(
        second["object"]["rows"][0]["object"]["metadata"]["name"],
        "b"
    );
}

#[tokio::test]
async fn closing_ends_watches() {
    let server = Server::new();
    let mut watch = Lines::open(
        &server,
        &format!("{CONFIG_MAPS}?watch=true&resourceVersion=1"),
        "*/*",
    )
    .await;
    let ended = tokio::spawn(async move { while watch.next().await.is_some() {} });
    server.api.close();
    ended.await.unwrap();
}
