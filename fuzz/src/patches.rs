//! Patches: a line with the type of patch and the kind (`merge pods`,
//! `json jobs.batch status`), then the body, for an object of that kind. The server returns
//! a patched object unchanged on reads. Merge and apply patches are idempotent.

use longshore_model::PatchKind;
use serde_json::{Value, json};

use super::server;

/// The object to patch, for a kind.
fn sample(word: &str) -> Option<Value> {
    let pod_spec = json!({
        "containers": [
            {"name": "a", "image": "i:1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}],
             "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
             "args": ["x", "y"], "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            {"name": "b", "image": "i:2", "resources": {"limits": {"cpu": "1"}}}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["h"]}],
    });
    let metadata = json!({
        "name": "x", "labels": {"a": "1", "b": "2"}, "annotations": {"n": "m"},
        "finalizers": ["example.com/one", "example.com/two"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
    });
    let spec = match word {
        "configmaps" => return Some(json!({"metadata": metadata, "data": {"a": "1", "b": "2"}})),
        "pods" => pod_spec,
        "deployments.apps" => json!({
            "replicas": 2, "selector": {"matchLabels": {"a": "1"}}, "strategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": {"a": "1"}}, "spec": pod_spec}}),
        "services" => json!({
            "selector": {"a": "1"}, "ports": [{"name": "p", "port": 80}, {"name": "q", "port": 81, "protocol": "UDP"}]}),
        "jobs.batch" => {
            let mut pod_spec = pod_spec;
            pod_spec["restartPolicy"] = json!("Never");
            json!({"completions": 2, "parallelism": 1, "template": {"spec": pod_spec}})
        }
        _ => return None,
    };
    Some(json!({"metadata": metadata, "spec": spec}))
}

pub fn check(data: &[u8]) {
    let Some((line, body)) = server::first_line(data) else {
        return;
    };
    let mut words = line.split(' ');
    let patch_kind = match words.next() {
        Some("json") => PatchKind::Json,
        Some("merge") => PatchKind::Merge,
        Some("strategic") => PatchKind::Strategic,
        Some("apply") => PatchKind::Apply,
        _ => return,
    };
    let word = words.next().unwrap_or_default();
    let Some(object) = sample(word) else { return };
    let part = if words.next() == Some("status") {
        "/status"
    } else {
        ""
    };
    server::with(|server| {
        let Some(kind) = server::kind(server, word) else {
            return;
        };
        let place = server::collection(&kind);
        let created = server.call(
            "POST",
            &place,
            "application/json",
            object.to_string().as_bytes(),
        );
        assert_eq!(created.code, 201, "{}", created.text());
        let path = format!("{place}/x");
        let manager = if patch_kind == PatchKind::Apply {
            "&fieldManager=fuzz&force=true"
        } else {
            ""
        };
        let patch = |query: &str| {
            let path = format!("{path}{part}?{query}{manager}");
            server.call("PATCH", &path, patch_kind.media_type(), body)
        };
        let dry = patch("dryRun=All&fieldValidation=Strict");
        let done = patch("");
        if done.is_success() {
            let object = done.value();
            let read = server.call("GET", &path, "application/json", b"");
            assert_eq!(
                read.value(),
                object,
                "the stored object differs from the response"
            );
            let unconditional = !String::from_utf8_lossy(body).contains("resourceVersion");
            let settles = matches!(patch_kind, PatchKind::Merge | PatchKind::Apply);
            if settles && unconditional {
                let again = patch("");
                assert!(
                    again.is_success(),
                    "the same patch is rejected the second time: {}",
                    again.text()
                );
                let again = again.value();
                assert_eq!(
                    content(&again, patch_kind),
                    content(&object, patch_kind),
                    "applying a patch twice changes the result"
                );
                assert_eq!(
                    patch("").value(),
                    again,
                    "applying a patch a third time changes the object"
                );
            }
        } else {
            assert!(
                !dry.is_success(),
                "a dry run accepts a patch that is rejected: {}",
                done.text()
            );
            let read = server.call("GET", &path, "application/json", b"");
            assert_eq!(
                read.value(),
                created.value(),
                "a rejected patch changed the object"
            );
        }
        server.remove(&path);
    });
}

/// The object without the fields that a second apply may still change: the owners of fields
/// inside remaining empty maps.
fn content(object: &Value, patch_kind: PatchKind) -> Value {
    let mut object = object.clone();
    if patch_kind == PatchKind::Apply {
        for name in ["managedFields", "resourceVersion"] {
            object["metadata"][name] = Value::Null;
        }
    }
    object
}
