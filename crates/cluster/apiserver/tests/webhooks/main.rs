//! Admission webhooks, called by the API server over HTTPS.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod calls;
#[path = "../api/common.rs"]
mod common;
mod conflicts;
mod conversion;
mod failures;
mod hook;
mod matching;
mod mutation;
mod operations;
mod races;
mod services;
mod subresources;

use common::{Answer, Server};
use serde_json::{Value, json};

const MERGE: &str = "application/merge-patch+json";

/// Creates a configuration of mutating or validating webhooks.
async fn configure(server: &Server, kind: &str, name: &str, webhooks: &[Value]) {
    let plural = format!("{}webhookconfigurations", kind.to_lowercase());
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    let body = json!({"metadata": {"name": name}, "webhooks": webhooks});
    let answer = server.post(&path, &body).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
}

/// Replaces some fields of a webhook.
fn with(mut webhook: Value, fields: Value) -> Value {
    let fields = fields.as_object().unwrap().clone();
    webhook.as_object_mut().unwrap().extend(fields);
    webhook
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}})
}

fn warnings(answer: &Answer) -> Vec<&str> {
    let all = answer.headers.get_all("warning").iter();
    all.map(|value| value.to_str().unwrap()).collect()
}
