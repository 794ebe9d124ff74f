//! Validation of ephemeral containers, which are added to running pods.

use longshore_model::CauseList;
use serde_json::Value;

use crate::{
    MIRROR_POD,
    cause::Cause,
    json::{self, Object},
    validate::field_value::below,
};

const LIST: &str = "spec.ephemeralContainers";
/// Fields of containers that ephemeral containers cannot set, in Kubernetes'
/// order.
const FORBIDDEN: &[&str] = &[
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Requires that a new pod has no ephemeral containers.
pub(crate) fn new_pod(pod: &Object, causes: &mut CauseList) {
    if listed(pod).next().is_some() {
        causes.push(Cause::forbidden(LIST, "cannot be set on create"));
    }
}

/// Validates the rules that differ from the rules of other containers.
pub(super) fn container(spec: &Object, container: &Object, path: &str, causes: &mut CauseList) {
    let at = |field: &str| below(path, field);
    let target = json::text(container, "targetContainerName");
    let mut others = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| json::items(spec, list));
    if !target.is_empty() && !others.any(|other| json::text(other, "name") == target) {
        let message = format!("Not found: {target:?}");
        let field = at("targetContainerName");
        causes.push(Cause::plain(&field, "FieldValueNotFound", message));
    }
    let detail = "cannot be set for an Ephemeral Container";
    for field in FORBIDDEN {
        if container.get(*field).is_some_and(is_set) {
            causes.push(Cause::forbidden(&at(field), detail));
        }
    }
    for (index, mount) in json::items(container, "volumeMounts").enumerate() {
        for field in ["subPath", "subPathExpr"] {
            if !json::text(mount, field).is_empty() {
                let field = at(&format!("volumeMounts[{index}].{field}"));
                causes.push(Cause::forbidden(&field, detail));
            }
        }
    }
}

/// Ephemeral containers can be added, but not changed or removed. Mirror pods cannot have any.
pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    let annotations = json::at(before, "metadata.annotations");
    if annotations.is_some_and(|all| all.get(MIRROR_POD).is_some()) {
        let detail = "static pods do not support ephemeral containers";
        *causes = CauseList::from_iter([Cause::forbidden("", detail)]);
        return;
    }
    for old in listed(before) {
        let name = json::text(old, "name");
        let new = listed(after).find(|new| json::text(new, "name") == name);
        let what = match new {
            None => "removed",
            Some(new) if new != old => "changed",
            Some(_) => continue,
        };
        let detail = format!("existing ephemeral containers {name:?} may not be {what}\n");
        causes.push(Cause::forbidden(LIST, &detail));
    }
}

fn listed(pod: &Object) -> impl Iterator<Item = &Object> {
    let spec = pod.get("spec").and_then(Value::as_object).into_iter();
    spec.flat_map(|spec| json::items(spec, "ephemeralContainers"))
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::StatusCause;

    use super::*;
    use serde_json::json;

    fn pod(ephemeral: Value) -> Object {
        let pod = json!({"spec": {
            "containers": [{"name": "main"}], "ephemeralContainers": ephemeral,
        }});
        pod.as_object().unwrap().clone()
    }

    fn texts(causes: &[StatusCause]) -> Vec<String> {
        let text = |cause: &StatusCause| format!("{}: {}", cause.field, cause.message);
        causes.iter().map(text).collect()
    }

    #[test]
    fn fields_that_ephemeral_containers_cannot_set() {
        let check = |fields: Value| {
            let pod = pod(json!([fields]));
            let mut causes = CauseList::new();
            let spec = pod["spec"].as_object().unwrap();
            container(spec, listed(&pod).next().unwrap(), "p", &mut causes);
            texts(&causes)
        };
        let good =
            json!({"name": "d", "resources": {}, "ports": [], "targetContainerName": "main"});
        assert!(check(good).is_empty());
        let target = check(json!({"targetContainerName": "other"}));
        assert_eq!(target, ["p.targetContainerName: Not found: \"other\""]);
        let mount = json!({"name": "v", "subPath": "a"});
        let bad = json!({"lifecycle": {"preStop": {}}, "ports": [{}], "volumeMounts": [mount]});
        let forbidden = "Forbidden: cannot be set for an Ephemeral Container";
        let fields = ["p.ports", "p.lifecycle", "p.volumeMounts[0].subPath"];
        assert_eq!(
            check(bad),
            fields.map(|field| format!("{field}: {forbidden}"))
        );
    }

    #[test]
    fn ephemeral_containers_can_only_be_added() {
        let change = |before: Value, after: Value| {
            let mut causes = CauseList::new();
            change(&pod(before), &pod(after), &mut causes);
            texts(&causes)
        };
        let (a, b) = (json!({"name": "a"}), json!({"name": "b"}));
        assert!(change(json!([a]), json!([b, a])).is_empty());
        let text = "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"a\" may \
                    not be";
        assert_eq!(
            change(json!([a]), json!([b])),
            [format!("{text} removed\n")]
        );
        let other = json!({"name": "a", "image": "i"});
        assert_eq!(
            change(json!([a]), json!([other])),
            [format!("{text} changed\n")]
        );
        let mut mirror = pod(json!([]));
        mirror.insert("metadata".into(), json!({"annotations": {MIRROR_POD: ""}}));
        let mut causes = CauseList::new();
        super::change(&mirror, &pod(json!([a])), &mut causes);
        assert_eq!(
            texts(&causes),
            [": Forbidden: static pods do not support ephemeral containers"]
        );
        let mut causes = CauseList::new();
        new_pod(&pod(json!([a])), &mut causes);
        assert_eq!(
            texts(&causes),
            ["spec.ephemeralContainers: Forbidden: cannot be set on create"]
        );
    }
}
