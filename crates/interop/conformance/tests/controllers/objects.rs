//! Objects of the tests.

use serde_json::{Value, json};

use crate::kubelet::BEHAVIOR;

/// Values of an object's field, as text.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A number in an object; 0 if it is absent.
pub(crate) fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// The items of a list in an object.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// The condition of a type in `status.conditions`.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut conditions = list(object, "/status/conditions").iter();
    conditions.find(|condition| condition["type"] == kind)
}

/// Returns true if a condition is true.
pub(crate) fn holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Returns true if a condition has this reason.
pub(crate) fn has_reason(object: &Value, kind: &str, reason: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["reason"] == reason)
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> String {
    text(object, "/metadata/name").to_owned()
}

/// The sorted names of objects.
pub(crate) fn names(objects: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = objects.iter().map(name).collect();
    names.sort();
    names
}

/// The uid of the controller of an object.
pub(crate) fn controller(object: &Value) -> &str {
    let owners = list(object, "/metadata/ownerReferences").iter();
    let mut controllers = owners.filter(|owner| owner["controller"] == true);
    controllers.next().map_or("", |owner| text(owner, "/uid"))
}

/// A template of pods with the label `app`, which behave in this way.
pub(crate) fn template(namespace: &str, app: &str, behavior: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}, "annotations": {BEHAVIOR: behavior}},
        "spec": spec(namespace),
    })
}

/// The spec of a pod that runs on the nodes of the test.
pub(crate) fn spec(namespace: &str) -> Value {
    json!({
        "nodeSelector": {"test": namespace},
        "containers": [{"name": "main", "image": "example.org/image:1"}],
    })
}

/// A workload with a selector and a template.
pub(crate) fn workload(name: &str, replicas: u32, template: &Value) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": template["metadata"]["labels"]},
            "template": template,
        },
    })
}

/// A Job of pods that behave in this way.
pub(crate) fn job(namespace: &str, name: &str, behavior: &str, spec: &Value) -> Value {
    let mut template = template(namespace, name, behavior);
    template["spec"]["restartPolicy"] = json!("Never");
    let mut job = json!({"metadata": {"name": name}, "spec": spec});
    job["spec"]["template"] = template;
    job
}
