//! Admission policies on a real API server.

#![allow(clippy::unwrap_used)]

#[path = "../api/common.rs"]
mod common;
mod definitions;
mod expressions;
mod matching;
mod mutation;
mod params;
mod permissions;
mod types;
mod validation;

use common::{Answer, Server};
use serde_json::{Value, json};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MERGE: &str = "application/merge-patch+json";

/// The rules for an operation on a resource of a group.
fn rules(group: &str, resource: &str, operations: &[&str]) -> Value {
    json!({"resourceRules": [{
        "apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": [resource],
    }]})
}

/// A policy for ConfigMaps that are created or updated, with further fields in its spec.
fn policy(name: &str, fields: Value) -> Value {
    let mut spec = json!({"matchConstraints": rules("", "configmaps", &["CREATE", "UPDATE"])});
    let fields = fields.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(fields);
    json!({"metadata": {"name": name}, "spec": spec})
}

fn binding(name: &str, fields: Value) -> Value {
    let mut spec = json!({"policyName": name, "validationActions": ["Deny"]});
    let fields = fields.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(fields);
    json!({"metadata": {"name": format!("{name}-binding")}, "spec": spec})
}

/// Creates an object and expects that it is created.
async fn make(server: &Server, path: &str, object: &Value) -> Value {
    let answer = server.post(path, object).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    answer.json()
}

/// Creates a policy and its binding.
async fn enforce(server: &Server, name: &str, spec: Value, bound: Value) {
    let policies = format!("{GROUP}/validatingadmissionpolicies");
    make(server, &policies, &policy(name, spec)).await;
    let bindings = format!("{GROUP}/validatingadmissionpolicybindings");
    make(server, &bindings, &binding(name, bound)).await;
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn warnings(answer: &Answer) -> Vec<&str> {
    let all = answer.headers.get_all("warning").iter();
    all.map(|value| value.to_str().unwrap()).collect()
}
