//! Aggregated API servers: APIServices whose Service leads to another server.

#![allow(clippy::unwrap_used)]

mod backend;
#[path = "../api/common.rs"]
mod common;
mod discovery;
mod registration;
mod requests;
mod status;

use std::time::Duration;

use backend::Backend;
use common::Server;
use serde_json::{Value, json};

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const FISH: &str = "/apis/fish.example.com/v1/namespaces/default/fish";
const MERGE: &str = "application/merge-patch+json";

/// Polls until `get` returns a result.
async fn until<T>(what: &str, get: impl AsyncFn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = get().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(60), found).await;
    found.unwrap_or_else(|_| panic!("timed out waiting for {what}"))
}

/// A server that aggregates others.
fn server() -> Server {
    let server = Server::new();
    tokio::spawn(server.api.aggregate());
    server
}

/// The certificate of the authority of the proxy.
fn proxy_authority(server: &Server) -> String {
    let data = server.api.request_headers().unwrap();
    let found = data
        .into_iter()
        .find(|(name, _)| *name == "requestheader-client-ca-file");
    found.unwrap().1
}

/// A server and an aggregated API server.
async fn start() -> (Server, Backend) {
    let server = server();
    let backend = Backend::start(&proxy_authority(&server)).await;
    (server, backend)
}

async fn create(server: &Server, path: &str, object: &Value) {
    let made = server.post(path, object).await;
    assert_eq!(made.code, 201, "{}", made.text());
}

fn service() -> Value {
    json!({"metadata": {"name": "backend"}, "spec": {"ports": [{"port": 443}]}})
}

fn slice(backend: &Backend, is_ready: bool) -> Value {
    json!({
        "metadata": {"name": "backend-a", "labels": {"kubernetes.io/service-name": "backend"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": backend.address.port()}],
        "endpoints": [{"addresses": [backend.address.ip()], "conditions": {"ready": is_ready}}],
    })
}

fn api_service(backend: &Backend) -> Value {
    json!({
        "metadata": {"name": "v1.fish.example.com"},
        "spec": {
            "group": "fish.example.com", "version": "v1",
            "groupPriorityMinimum": 2000, "versionPriority": 10,
            "service": {"namespace": "default", "name": "backend"},
            "caBundle": backend.bundle,
        },
    })
}

/// Registers the aggregated API server.
async fn register(server: &Server, backend: &Backend) {
    create(server, SERVICES, &service()).await;
    create(server, SLICES, &slice(backend, true)).await;
    create(server, API_SERVICES, &api_service(backend)).await;
}

/// The reason of the condition `Available`.
async fn reason(server: &Server, name: &str) -> Option<String> {
    Some(
        condition(server, name).await?["reason"]
            .as_str()?
            .to_owned(),
    )
}

/// The condition `Available`.
async fn condition(server: &Server, name: &str) -> Option<Value> {
    let object = server.get(&format!("{API_SERVICES}/{name}")).await.json();
    let conditions = object["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|found| found["type"] == "Available")
        .cloned()
}

/// Waits for a reason of the condition, and returns the message.
async fn until_reason(server: &Server, expected: &str) -> String {
    let name = "v1.fish.example.com";
    until(expected, async || {
        let found = reason(server, name).await?;
        (found == expected).then_some(())
    })
    .await;
    let condition = condition(server, name).await.unwrap();
    condition["message"].as_str().unwrap_or_default().to_owned()
}

/// A server with an aggregated API server that is available.
async fn start_available() -> (Server, Backend) {
    let (server, backend) = start().await;
    register(&server, &backend).await;
    until_reason(&server, "Passed").await;
    (server, backend)
}
