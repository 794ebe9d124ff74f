//! The bodies of requests: selectors, patches, configurations.

use longshore_engine::{ListRequest, WriteOptions};
use longshore_model::{FieldSelector, LabelSelector, PatchKind};
use serde_json::{Value, json};

use super::{
    kind::{ApiVersion, Key, Kind},
    model_object::{image, versions},
    operation::{Change, Config, Scope},
};

fn labels(selector: u8) -> LabelSelector {
    let text = ["", "l=1", "l!=1", "l in (0,2)", ""];
    text[usize::from(selector) % 5].parse().unwrap()
}

fn fields(scope: &Scope) -> FieldSelector {
    let text = match (scope.selector % 5, scope.kind) {
        (4, Kind::Pod) => "spec.nodeName=node1",
        (4, _) => "metadata.name!=o1",
        _ => "",
    };
    text.parse().unwrap()
}

/// A list request for a scope.
pub fn request(scope: &Scope, api_version: ApiVersion) -> ListRequest {
    ListRequest {
        namespace: scope.namespace.map(str::to_owned),
        labels: labels(scope.selector),
        fields: fields(scope),
        ..ListRequest::of(scope.kind.info(api_version))
    }
}

/// The options of a write without a manager.
pub fn options(dry: bool) -> WriteOptions {
    WriteOptions {
        dry_run: dry,
        user_agent: Some("model".into()),
        ..WriteOptions::default()
    }
}

fn finalizers(bits: u8) -> Vec<&'static str> {
    let all = ["a.b/c", "d.e/f"];
    all.into_iter()
        .enumerate()
        .filter(|(i, _)| bits & (1 << i) != 0)
        .map(|(_, name)| name)
        .collect()
}

/// Applies a change to an object that was read.
pub fn apply_change(kind: Kind, object: &mut Value, change: Change) {
    match change {
        Change::Finalizers(bits) => object["metadata"]["finalizers"] = json!(finalizers(bits)),
        Change::Label(label) => object["metadata"]["labels"]["l"] = json!(label.to_string()),
        Change::Value(value) => match kind {
            Kind::ConfigMap => object["data"]["a"] = json!(value.to_string()),
            Kind::Pod => object["spec"]["containers"][0]["image"] = json!(image(value)),
            Kind::Job => object["spec"]["parallelism"] = json!(value),
            Kind::Definition => object["spec"]["versions"] = versions(value),
            Kind::Shoe => object["spec"]["size"] = json!(value),
            // These kinds have no value: the label changes instead.
            Kind::Namespace | Kind::Account => apply_change(kind, object, Change::Label(value)),
        },
    }
}

/// The path, the operation and the value of a JSON patch.
fn json_patch_target(kind: Kind, change: Change) -> (&'static str, Value) {
    match change {
        Change::Label(label) => ("/metadata/labels/l", json!(label.to_string())),
        Change::Finalizers(bits) => ("/metadata/finalizers", json!(finalizers(bits))),
        Change::Value(value) => match kind {
            Kind::ConfigMap => ("/data/a", json!(value.to_string())),
            Kind::Pod => ("/spec/containers/0/image", json!(image(value))),
            Kind::Job => ("/spec/parallelism", json!(value)),
            Kind::Definition => ("/spec/versions", versions(value)),
            Kind::Shoe => ("/spec/size", json!(value)),
            Kind::Namespace | Kind::Account => json_patch_target(kind, Change::Label(value)),
        },
    }
}

/// The body of a patch.
pub fn patch(kind: Kind, sort: PatchKind, change: Change, version: Option<u64>) -> Value {
    let version = version.map(|version| version.to_string());
    let (path, value) = json_patch_target(kind, change);
    if sort == PatchKind::Json {
        let mut steps = vec![json!({"op": "add", "path": path, "value": value})];
        if let Some(version) = version {
            steps.push(
                json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}),
            );
        }
        return steps.into();
    }
    let mut body = json!({});
    match (kind, change) {
        // A JSON merge patch replaces the whole list, a strategic one merges by name.
        (Kind::Pod, Change::Value(value)) => {
            body["spec"]["containers"] = json!([{"name": "c", "image": image(value)}]);
        }
        _ => apply_change(kind, &mut body, change),
    }
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = json!(version);
    }
    body
}

/// The path of the number in a kind's status, and its JSON.
pub fn status(kind: Kind, value: u8) -> (&'static str, Value) {
    match kind {
        Kind::Job => ("active", json!(value)),
        Kind::Shoe => ("replicas", json!(value)),
        _ => ("message", json!(format!("s{value}"))),
    }
}

/// The configuration that a manager applies. Like every body it has the label and the field
/// `k`.
pub fn configuration(key: &Key, config: &Config, version: Option<u64>) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": key.name, "labels": {"k": "k"}}, "data": {"k": "k"}});
    if let Some(label) = config.label {
        object["metadata"]["labels"]["l"] = json!(label.to_string());
    }
    if let Some(value) = config.value {
        object["data"]["a"] = json!(value.to_string());
    }
    if let Some(version) = version {
        object["metadata"]["resourceVersion"] = json!(version.to_string());
    }
    object
}
