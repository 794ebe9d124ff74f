//! Validation of changes of pods.

use longshore_model::CauseList;
use serde_json::Value;

use crate::{
    cause::Cause,
    json::{self, Object},
};

const CHANGE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// Validates a change of a pod: only a few fields are mutable, and some more while the pod has
/// scheduling gates.
pub(crate) fn object(before: &Object, after: &Object, causes: &mut CauseList) {
    let (Some(Value::Object(old)), Some(Value::Object(new))) =
        (before.get("spec"), after.get("spec"))
    else {
        return;
    };
    if old == new {
        return;
    }
    for list in CONTAINERS {
        if json::items(old, list).count() != json::items(new, list).count() {
            let detail = "pod updates may not add or remove containers";
            causes.push(Cause::forbidden(&format!("spec.{list}"), detail));
            return;
        }
    }
    deadline(old, new, causes);
    tolerations(old, new, causes);
    gates(old, new, causes);
    let mut rest = new.clone();
    for list in CONTAINERS {
        for (one, was) in json::items_mut(&mut rest, list).zip(json::items(old, list)) {
            json::copy(was, one, "image");
        }
    }
    for checked in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        json::copy(old, &mut rest, checked);
    }
    if json::number(old, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0)
        && json::number(new, "terminationGracePeriodSeconds") == Some(1)
    {
        json::copy(old, &mut rest, "terminationGracePeriodSeconds");
    }
    if !elements(old, "schedulingGates").is_empty() {
        node_selector(old, new, causes);
        node_affinity(old, new, causes);
        json::copy(old, &mut rest, "nodeSelector");
        copy_node_affinity(old, &mut rest);
    }
    if rest != *old {
        causes.push(Cause::forbidden("spec", CHANGE));
    }
}

fn elements<'a>(object: &'a Object, path: &str) -> &'a [Value] {
    let list = json::at(object, path).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// A deadline may be set or decreased, but not removed or increased.
fn deadline(old: &Object, new: &Object, causes: &mut CauseList) {
    let path = "spec.activeDeadlineSeconds";
    let (old, new) = (
        json::number(old, "activeDeadlineSeconds"),
        json::number(new, "activeDeadlineSeconds"),
    );
    match (old, new) {
        (Some(_), None) => {
            let detail = "must not update from a positive integer to nil value";
            causes.push(Cause::invalid(path, Value::Null, detail));
        }
        (Some(old), Some(new)) if new > old => {
            let detail = "must be less than or equal to previous value";
            causes.push(Cause::invalid(path, new, detail));
        }
        _ => {}
    }
}

/// Tolerations may be added. Existing tolerations may change only in `tolerationSeconds`.
fn tolerations(old: &Object, new: &Object, causes: &mut CauseList) {
    let without_seconds = |value: &Value| {
        let mut value = value.clone();
        if let Value::Object(toleration) = &mut value {
            toleration.remove("tolerationSeconds");
        }
        value
    };
    let new: Vec<_> = elements(new, "tolerations")
        .iter()
        .map(without_seconds)
        .collect();
    let mut old = elements(old, "tolerations").iter().map(without_seconds);
    if !old.all(|toleration| new.contains(&toleration)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", detail));
    }
}

/// Scheduling gates may only be removed.
fn gates(old: &Object, new: &Object, causes: &mut CauseList) {
    let name = |gate: &Value| gate["name"].as_str().unwrap_or_default().to_owned();
    let old: Vec<_> = elements(old, "schedulingGates").iter().map(name).collect();
    for (index, gate) in elements(new, "schedulingGates").iter().enumerate() {
        let name = name(gate);
        if !old.contains(&name) {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            let path = format!("spec.schedulingGates[{index}].name");
            causes.push(Cause::forbidden(&path, &detail));
        }
    }
}

/// The node selector of a pod with scheduling gates may only be extended.
fn node_selector(old: &Object, new: &Object, causes: &mut CauseList) {
    let new = new.get("nodeSelector");
    let kept = old.get("nodeSelector").and_then(Value::as_object);
    let mut kept = kept.into_iter().flatten();
    if !kept.all(|(key, value)| new.and_then(|new| new.get(key)) == Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        let new = new.cloned().unwrap_or_default();
        causes.push(Cause::invalid("spec.nodeSelector", new, detail));
    }
}

/// The required node affinity of a pod with scheduling gates may only become stricter.
fn node_affinity(old: &Object, new: &Object, causes: &mut CauseList) {
    const TERMS: &str =
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let (old, new) = (elements(old, TERMS), elements(new, TERMS));
    if !old.is_empty() && old.len() != new.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        causes.push(Cause::invalid(
            &format!("spec.{TERMS}"),
            new.to_vec(),
            detail,
        ));
        return;
    }
    for (index, (was, is)) in old.iter().zip(new).enumerate() {
        if !has_only_additions(was, is) {
            let path = format!("spec.{TERMS}[{index}]");
            let detail = "only additions are allowed (no mutations or deletions)";
            causes.push(Cause::invalid(&path, is.clone(), detail));
        }
    }
}

/// Returns true if a node selector term begins with all requirements of another one. Requirements
/// may not be added to an empty term, because it selects no nodes.
fn has_only_additions(old: &Value, new: &Value) -> bool {
    let list = |term: &Value, name: &str| term[name].as_array().cloned().unwrap_or_default();
    let names = ["matchExpressions", "matchFields"];
    let is_empty = |term: &Value| names.iter().all(|name| list(term, name).is_empty());
    if is_empty(old) {
        return is_empty(new);
    }
    names
        .iter()
        .all(|name| list(new, name).starts_with(&list(old, name)))
}

/// Replaces the node affinity with the node affinity of `old`.
fn copy_node_affinity(old: &Object, new: &mut Object) {
    let was = old.get("affinity").and_then(Value::as_object);
    match was {
        Some(was) => {
            let affinity = json::child(new, "affinity");
            json::copy(was, affinity, "nodeAffinity");
        }
        None => {
            if let Some(Value::Object(affinity)) = new.get_mut("affinity") {
                affinity.remove("nodeAffinity");
                if affinity.is_empty() {
                    new.remove("affinity");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use longshore_model::StatusCause;

    use super::*;

    /// The causes of a change from one spec to another, as `field: detail`.
    fn causes(old: Value, new: Value) -> Vec<String> {
        let pod = |mut spec: Value| {
            spec["containers"] = json!([{"name": "main", "image": "a"}]);
            json!({"spec": spec}).as_object().unwrap().clone()
        };
        let mut causes = CauseList::new();
        object(&pod(old), &pod(new), &mut causes);
        let text = |cause: StatusCause| {
            let (_, detail) = cause.message.rsplit_once(": ").unwrap();
            let detail: String = detail.chars().take(52).collect();
            format!("{}: {detail}", cause.field)
        };
        causes.into_iter().map(text).collect()
    }

    fn affinity(terms: Value) -> Value {
        json!({"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
    }

    #[test]
    fn pods_with_scheduling_gates_can_be_restricted_to_nodes() {
        let gates = json!([{"name": "example.com/wait"}]);
        let zone = json!({"key": "zone", "operator": "In", "values": ["a"]});
        let disk = json!({"key": "disk", "operator": "Exists"});
        let old = json!({"schedulingGates": gates, "nodeSelector": {"a": "b"},
            "affinity": affinity(json!([{"matchExpressions": [zone]}]))});
        let new = json!({"nodeSelector": {"a": "b", "c": "d"},
            "affinity": affinity(json!([{"matchExpressions": [zone, disk]}]))});
        assert_eq!(causes(old.clone(), new), [""; 0]);
        let gated = json!({"schedulingGates": gates});
        assert_eq!(
            causes(
                gated.clone(),
                json!({"nodeSelector": {"c": "d"},
            "affinity": affinity(json!([{"matchExpressions": [zone]}]))})
            ),
            [""; 0]
        );
        let wrong = json!({"nodeSelector": {"a": "c"},
            "affinity": affinity(json!([{"matchExpressions": [disk, zone]}]))});
        assert_eq!(
            causes(old.clone(), wrong),
            [
                "spec.nodeSelector: only additions to spec.nodeSelector are allowed (no ",
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]: only additions are allowed (no mutations or deletion"
            ]
        );
        let more = json!({"nodeSelector": {"a": "b"}, "affinity": affinity(json!([]))});
        assert_eq!(
            causes(old, more),
            [
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: no additions/deletions to non-empty NodeSelectorTerm"
            ]
        );
        let pods = json!({"affinity": {"podAffinity": {}}});
        assert_eq!(
            causes(gated, pods),
            ["spec: pod updates may not change fields other than `spec.c"]
        );
        assert_eq!(
            causes(json!({}), json!({"nodeSelector": {"c": "d"}})),
            ["spec: pod updates may not change fields other than `spec.c"]
        );
    }

    #[test]
    fn an_empty_term_stays_empty() {
        let zone = json!({"matchFields": [{"key": "metadata.name", "operator": "In"}]});
        assert!(has_only_additions(&json!({}), &json!({"matchFields": []})));
        assert!(!has_only_additions(&json!({}), &zone));
        assert!(has_only_additions(&zone, &zone));
        assert!(!has_only_additions(&zone, &json!({})));
    }

    #[test]
    fn gates_are_removed_and_tolerations_added() {
        let old = json!({"schedulingGates": [{"name": "a"}],
            "tolerations": [{"key": "x", "tolerationSeconds": 5}]});
        let new = json!({"tolerations": [{"key": "y"}, {"key": "x", "tolerationSeconds": 9}]});
        assert_eq!(causes(old.clone(), new), [""; 0]);
        let wrong = json!({"schedulingGates": [{"name": "b"}], "tolerations": [{"key": "y"}]});
        assert_eq!(
            causes(old, wrong),
            [
                "spec.tolerations: existing toleration can not be modified except its t",
                "spec.schedulingGates[0].name: only deletion is allowed, but found new scheduling g"
            ]
        );
    }
}
