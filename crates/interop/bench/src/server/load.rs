//! Sends many concurrent requests: creates, patches, lists. The bodies are prepared in
//! advance and the responses are discarded, so that the client uses little processor time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube_client::{Client, client::Body};

use super::wire::{Prepared, Wire};
use crate::{
    pods,
    report::{Failure, median_async},
};

/// The number of concurrent requests, as of a busy controller.
pub(super) const CONCURRENCY: usize = 64;
pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Sends one request and returns the length of the response.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    media_type: &str,
    body: impl Into<Bytes>,
) -> Result<usize, Failure> {
    let answer = answer(client, method, path, media_type, body).await?;
    Ok(answer.len())
}

/// Sends one request and returns the response.
pub(super) async fn answer(
    client: &Client,
    method: Method,
    path: &str,
    media_type: &str,
    body: impl Into<Bytes>,
) -> Result<Bytes, Failure> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(Body::from(body.into().to_vec()))?;
    let response = client.send(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if status.is_success() {
        return Ok(body);
    }
    let start = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
    Err(format!("{path}: {status}: {start}").into())
}

/// Requests per second: the median of `runs` consecutive parts of the requests.
async fn rate(requests: &[Prepared], wire: &mut Wire, runs: usize) -> Result<f64, Failure> {
    let mut rates = Vec::new();
    for part in requests.chunks(requests.len().div_ceil(runs).max(1)) {
        let started = Instant::now();
        wire.send(part).await?;
        rates.push(part.len() as f64 / started.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    Ok(rates.get(rates.len() / 2).copied().unwrap_or_default())
}

/// Creates pods in a namespace.
pub(super) async fn create(
    wire: &mut Wire,
    namespace: &str,
    count: usize,
    runs: usize,
) -> Result<f64, Failure> {
    let create = |index| {
        let mut pod = pods::pod(index);
        pod["metadata"]["namespace"] = namespace.into();
        Prepared {
            method: Method::POST,
            path: format!("/api/v1/namespaces/{namespace}/pods"),
            media_type: JSON,
            body: pod.to_string().into(),
        }
    };
    let requests: Vec<_> = (0..count).map(create).collect();
    rate(&requests, wire, runs).await
}

pub(super) async fn patch_status(
    wire: &mut Wire,
    count: usize,
    runs: usize,
) -> Result<f64, Failure> {
    let patch = |index| Prepared {
        method: Method::PATCH,
        path: format!("{PODS}/worker-{index:05}/status"),
        media_type: MERGE,
        body: Bytes::from_static(br#"{"status":{"message":"seen"}}"#),
    };
    let requests: Vec<_> = (0..count).map(patch).collect();
    rate(&requests, wire, runs).await
}

pub(super) async fn list(client: &Client, runs: usize) -> Result<Duration, Failure> {
    median_async(runs, async || {
        send(client, Method::GET, PODS, JSON, Bytes::new())
            .await
            .map(drop)
    })
    .await
}
