//! Many requests at a time: creates, patches, lists. The bodies are made
//! beforehand and the answers are not read, so that the client costs little.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube_client::{Client, client::Body};

use crate::{
    pods,
    report::{Failure, median_async},
};

/// As many requests as a busy controller has under way.
const AT_A_TIME: usize = 64;
pub(super) const JSON: &str = "application/json";
pub(super) const MERGE: &str = "application/merge-patch+json";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// One request; the length of its answer.
pub(super) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    media_type: &str,
    body: impl Into<Bytes>,
) -> Result<usize, Failure> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(Body::from(body.into().to_vec()))?;
    let response = client.send(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if status.is_success() {
        return Ok(body.len());
    }
    let start = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
    Err(format!("{path}: {status}: {start}").into())
}

/// Requests a second for all of them.
async fn rate(
    requests: Vec<(Method, String, &'static str, Bytes)>,
    client: &Client,
) -> Result<f64, Failure> {
    let count = requests.len() as f64;
    let started = Instant::now();
    stream::iter(requests)
        .map(|(method, path, media_type, body)| async move {
            send(client, method, &path, media_type, body)
                .await
                .map(drop)
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(count / started.elapsed().as_secs_f64())
}

pub(super) async fn create(client: &Client, count: usize) -> Result<f64, Failure> {
    let requests = (0..count)
        .map(|index| {
            (
                Method::POST,
                PODS.to_owned(),
                JSON,
                pods::pod(index).to_string().into(),
            )
        })
        .collect();
    rate(requests, client).await
}

pub(super) async fn patch_status(client: &Client, count: usize) -> Result<f64, Failure> {
    let body = Bytes::from_static(br#"{"status":{"message":"seen"}}"#);
    let requests = (0..count)
        .map(|index| {
            (
                Method::PATCH,
                format!("{PODS}/worker-{index:05}/status"),
                MERGE,
                body.clone(),
            )
        })
        .collect();
    rate(requests, client).await
}

pub(super) async fn list(client: &Client, runs: usize) -> Result<Duration, Failure> {
    median_async(runs, async || {
        send(client, Method::GET, PODS, JSON, Bytes::new())
            .await
            .map(drop)
    })
    .await
}
