//! Compaction of the real server's etcd through the HTTP gateway of etcd.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// Compacts everything before the latest revision.
pub(crate) async fn compact(etcd: &str) {
    // The header of every range response contains the latest revision.
    let range = post(etcd, "/v3/kv/range", &json!({"key": "AA==", "limit": 1})).await;
    let revision = &range["header"]["revision"];
    let compacted = json!({"revision": revision, "physical": true});
    post(etcd, "/v3/kv/compaction", &compacted).await;
}

#[allow(clippy::expect_used, reason = "tests stop here")]
async fn post(etcd: &str, path: &str, body: &Value) -> Value {
    let authority = etcd.trim_start_matches("http://");
    let stream = TcpStream::connect(authority)
        .await
        .unwrap_or_else(|error| panic!("cannot connect to etcd at {etcd}: {error}"));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("the HTTP handshake succeeds");
    tokio::spawn(connection);
    let request = Request::post(path)
        .header("host", authority)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("the request is valid");
    let response = sender.send_request(request).await.expect("etcd responds");
    let code = response.status();
    let bytes = response
        .into_body()
        .collect()
        .await
        .expect("the body is complete");
    let bytes = bytes.to_bytes();
    assert_eq!(
        code,
        200,
        "etcd {path}: {}",
        String::from_utf8_lossy(&bytes)
    );
    serde_json::from_slice(&bytes).expect("the body is JSON")
}
