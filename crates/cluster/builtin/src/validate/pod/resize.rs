//! Validation of resizes: changes of the CPU and memory of a pod through its subresource `resize`.

use longshore_model::CauseList;
use serde_json::{Map, Value};

use crate::{
    MIRROR_POD,
    cause::Cause,
    defaults,
    json::{self, Object},
    validate::field_value::below,
};

const ONLY_CPU_AND_MEMORY: &str = "only cpu and memory resources are mutable";
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
const LISTS: [&str; 2] = ["requests", "limits"];

/// Validates a container's `resizePolicy`, which decides whether a resize restarts the container.
pub(super) fn policies(spec: &Object, container: &Object, path: &str, causes: &mut CauseList) {
    let path = below(path, "resizePolicy");
    let never = json::text(spec, "restartPolicy") == "Never";
    let mut known = Vec::new();
    for (index, policy) in json::items(container, "resizePolicy").enumerate() {
        let (name, restart) = (
            json::text(policy, "resourceName"),
            json::text(policy, "restartPolicy"),
        );
        if known.contains(&name) {
            causes.push(Cause::duplicate(&format!("{path}[{index}]"), name));
        }
        known.push(name);
        for (value, supported) in [
            (name, RESIZABLE),
            (restart, ["NotRequired", "RestartContainer"]),
        ] {
            if value.is_empty() {
                causes.push(Cause::required(&path, ""));
            } else if !supported.contains(&value) {
                causes.push(Cause::not_supported(&path, value, &supported));
            }
        }
        if never && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            causes.push(Cause::invalid(&path, restart, detail));
        }
    }
}

/// Validates a resize. The rules, their order and their messages equal Kubernetes'.
pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    let empty = Object::new();
    let spec = |pod: &'_ Object| pod.get("spec").and_then(Value::as_object).cloned();
    let (old, new) = (spec(before), spec(after));
    let (old, new) = (
        old.as_ref().unwrap_or(&empty),
        new.as_ref().unwrap_or(&empty),
    );
    let annotations = json::at(before, "metadata.annotations");
    if annotations.is_some_and(|all| all.get(MIRROR_POD).is_some()) {
        *causes = CauseList::from_iter([Cause::forbidden("", "static pods cannot be resized")]);
        return;
    }
    if json::text(old, "os.name") == "windows" {
        *causes = CauseList::from_iter([Cause::forbidden("", "windows pods cannot be resized")]);
        return;
    }
    let class = match json::text(before, "status.qosClass") {
        "" => defaults::pod::qos_class(before),
        known => known,
    };
    if class != defaults::pod::qos_class(after) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        causes.push(Cause::invalid("spec", class, detail));
    }
    if !is_supported(before) {
        let detail = "Pod running on node without support for resize";
        causes.push(Cause::forbidden("spec", detail));
    }
    of_pod(old, new, causes);
    let order = order(old, new);
    if !order.is_empty() {
        causes.extend(order);
        return;
    }
    for list in ["initContainers", "containers"] {
        for (index, (was, is)) in pairs(old, new, list).enumerate() {
            for field in LISTS {
                if is_removed(amounts(was, field), amounts(is, field)) {
                    let path = format!("spec.{list}[{index}].resources.{field}");
                    let detail = format!("resource {field} cannot be removed");
                    causes.push(Cause::forbidden(&path, &detail));
                }
            }
        }
    }
    for (was, is) in pairs(old, new, "containers") {
        if without_resizable(was) != without_resizable(is) {
            causes.push(Cause::forbidden("spec", ONLY_CPU_AND_MEMORY));
        }
    }
    for (index, (was, is)) in pairs(old, new, "initContainers").enumerate() {
        let path = format!("spec.initContainers[{index}]");
        if without_resizable(was) != without_resizable(is) {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            causes.push(Cause::forbidden(&path, detail));
        }
        let is_sidecar = json::text(is, "restartPolicy") == "Always";
        let mut policies = json::items(is, "resizePolicy");
        let restarts = policies.any(|one| json::text(one, "restartPolicy") == "RestartContainer");
        if was != is && !is_sidecar && restarts {
            let detail = "non-sidecar init containers with a resize policy of RestartContainer \
                          cannot be resized";
            causes.push(Cause::forbidden(&path, detail));
        }
    }
}

/// Returns true if the node of the pod reports the resources of its running containers, or if no
/// container is running.
fn is_supported(pod: &Object) -> bool {
    let status = pod.get("status").and_then(Value::as_object);
    let mut statuses = status
        .into_iter()
        .flat_map(|status| json::items(status, "containerStatuses"));
    let running = statuses.find(|one| json::at(one, "state.running").is_some_and(Value::is_object));
    running.is_none_or(|one| one.get("resources").is_some_and(Value::is_object))
}

/// Validates the resources of the pod itself.
fn of_pod(old: &Object, new: &Object, causes: &mut CauseList) {
    let is_set = |spec: &Object| LISTS.iter().any(|list| !amounts(spec, list).is_empty());
    if !is_set(old) && !is_set(new) {
        return;
    }
    let is_present = |spec: &Object| spec.get("resources").is_some_and(Value::is_object);
    if is_present(old) {
        if !is_present(new) {
            let detail = "pod-level resources cannot be removed";
            causes.push(Cause::forbidden("spec.resources", detail));
            return;
        }
        for list in LISTS {
            if is_removed(amounts(old, list), amounts(new, list)) {
                let path = format!("spec.resources.{list}");
                let detail = format!("pod-level resource {list} cannot be removed");
                causes.push(Cause::forbidden(&path, &detail));
            }
        }
    }
    let of = |spec: &Object| spec.get("resources").cloned().unwrap_or_default();
    let only = |resources: Value| {
        let holder = Map::from_iter([("resources".to_owned(), resources)]);
        without_resizable(&holder)
    };
    if only(of(old)) != only(of(new)) {
        let detail = "only cpu and memory resources are mutable at pod-level";
        causes.push(Cause::forbidden("spec", detail));
    }
}

fn order(old: &Object, new: &Object) -> CauseList {
    let mut causes = CauseList::new();
    for list in ["containers", "initContainers"] {
        let count = |spec| json::items(spec, list).count();
        if count(old) != count(new) {
            let detail = format!("{list} may not be added or removed on resize");
            causes.push(Cause::forbidden(&format!("spec.{list}"), &detail));
            continue;
        }
        for (index, (was, is)) in pairs(old, new, list).enumerate() {
            if json::text(was, "name") != json::text(is, "name") {
                let detail = format!("{list} may not be renamed or reordered on resize");
                let path = format!("spec.{list}[{index}].name");
                causes.push(Cause::forbidden(&path, &detail));
            }
        }
    }
    causes
}

fn pairs<'a>(
    old: &'a Object,
    new: &'a Object,
    list: &'a str,
) -> impl Iterator<Item = (&'a Object, &'a Object)> {
    json::items(old, list).zip(json::items(new, list))
}

/// The names of the resources in the requests or limits of a container or a pod.
fn amounts<'a>(of: &'a Object, list: &str) -> Vec<&'a str> {
    let found = of
        .get("resources")
        .and_then(|resources| resources.get(list));
    let found = found.and_then(Value::as_object).into_iter().flatten();
    found.map(|(name, _)| name.as_str()).collect()
}

fn is_removed(old: Vec<&str>, new: Vec<&str>) -> bool {
    old.iter().any(|name| !new.contains(name))
}

/// Removes the fields that a resize may change. Empty lists count as absent.
fn without_resizable(of: &Object) -> Object {
    let mut rest = of.clone();
    let Some(Value::Object(mut resources)) = rest.remove("resources") else {
        return rest;
    };
    for list in LISTS {
        if let Some(Value::Object(amounts)) = resources.get_mut(list) {
            amounts.retain(|name, _| !RESIZABLE.contains(&name.as_str()));
        }
    }
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    resources.retain(|_, value| !is_empty(value));
    if !resources.is_empty() {
        rest.insert("resources".to_owned(), resources.into());
    }
    rest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use longshore_model::StatusCause;

    use super::*;

    fn texts(causes: &[StatusCause]) -> Vec<String> {
        let text = |cause: &StatusCause| format!("{}: {}", cause.field, cause.message);
        causes.iter().map(text).collect()
    }

    fn pod(spec: Value) -> Object {
        let mut pod = json!({"metadata": {"name": "p"}, "spec": spec});
        let class = defaults::pod::qos_class(pod.as_object().unwrap());
        pod["status"] = json!({"qosClass": class});
        pod.as_object().unwrap().clone()
    }

    fn container(name: &str, requests: Value, limits: Value) -> Value {
        json!({"name": name, "resources": {"requests": requests, "limits": limits}})
    }

    fn check(old: Value, new: Value) -> Vec<String> {
        let mut causes = CauseList::new();
        change(&pod(old), &pod(new), &mut causes);
        texts(&causes)
    }

    fn one(requests: Value, limits: Value) -> Value {
        json!({"containers": [container("c", requests, limits)]})
    }

    #[test]
    fn cpu_and_memory_can_change_and_be_added() {
        let old = one(json!({"cpu": "1"}), json!({}));
        let new = one(
            json!({"cpu": "2", "memory": "1Gi"}),
            json!({"memory": "2Gi"}),
        );
        assert!(check(old, new).is_empty());
        let mut sidecar = container("s", json!({"cpu": "1"}), json!({}));
        sidecar["restartPolicy"] = json!("Always");
        let spec = |cpu: &str| {
            let mut sidecar = sidecar.clone();
            sidecar["resources"]["requests"]["cpu"] = json!(cpu);
            json!({"containers": [{"name": "c"}], "initContainers": [sidecar]})
        };
        assert!(check(spec("1"), spec("2")).is_empty());
    }

    #[test]
    fn amounts_cannot_be_removed_and_the_class_cannot_change() {
        let old = one(json!({"cpu": "1", "memory": "1Gi"}), json!({"cpu": "2"}));
        let found = check(old.clone(), one(json!({"cpu": "1"}), json!({})));
        let expected = [
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
        ];
        assert_eq!(found, expected);
        let guaranteed = json!({"cpu": "1", "memory": "1Gi"});
        let found = check(old, one(guaranteed.clone(), guaranteed.clone()));
        let text = "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result \
                    of resizing";
        assert_eq!(found, [text]);
        let found = check(
            json!({"containers": [{"name": "c"}]}),
            one(guaranteed, json!({})),
        );
        assert!(found[0].contains("\"BestEffort\""), "{found:?}");
    }

    #[test]
    fn other_resources_and_containers_cannot_change() {
        let with = |name: &str, amount: &str| one(json!({"cpu": "1", name: amount}), json!({}));
        let found = check(
            with("ephemeral-storage", "1Gi"),
            with("ephemeral-storage", "2Gi"),
        );
        assert_eq!(
            found,
            ["spec: Forbidden: only cpu and memory resources are mutable"]
        );
        let mut policy = one(json!({"cpu": "1"}), json!({}));
        policy["containers"][0]["resizePolicy"] =
            json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
        assert_eq!(
            check(one(json!({"cpu": "1"}), json!({})), policy.clone()),
            found
        );
        let renamed = json!({"containers": [container("d", json!({"cpu": "1"}), json!({}))]});
        assert_eq!(
            check(one(json!({"cpu": "1"}), json!({})), renamed),
            [
                "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on \
              resize"
            ]
        );
        let mut init = json!({"containers": [{"name": "c"}]});
        init["initContainers"] = policy["containers"].clone();
        let mut larger = init.clone();
        larger["initContainers"][0]["resources"]["requests"]["cpu"] = json!("2");
        let found = check(init, larger);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("RestartContainer cannot be resized"),
            "{found:?}"
        );
    }

    #[test]
    fn resources_of_the_pod() {
        let spec =
            |resources: Value| json!({"containers": [{"name": "c"}], "resources": resources});
        let cpu = |cpu: &str| spec(json!({"requests": {"cpu": cpu}}));
        assert!(check(cpu("1"), cpu("2")).is_empty());
        let found = check(cpu("1"), json!({"containers": [{"name": "c"}]}));
        assert!(
            found.iter().any(|text| text.contains("cannot be removed")),
            "{found:?}"
        );
        let found = check(
            spec(json!({"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}})),
            spec(json!({"requests": {"cpu": "1", "hugepages-2Mi": "4Mi"}})),
        );
        assert_eq!(
            found,
            ["spec: Forbidden: only cpu and memory resources are mutable at pod-level"]
        );
    }

    #[test]
    fn nodes_without_support_and_static_pods() {
        let mut before = pod(one(json!({"cpu": "1"}), json!({})));
        let after = pod(one(json!({"cpu": "2"}), json!({})));
        let check = |before: &Object| {
            let mut causes = CauseList::new();
            change(before, &after, &mut causes);
            texts(&causes)
        };
        let running = json!([{"name": "c", "state": {"running": {}}}]);
        before["status"]["containerStatuses"] = running;
        assert_eq!(
            check(&before),
            ["spec: Forbidden: Pod running on node without support for resize"]
        );
        before["status"]["containerStatuses"][0]["resources"] = json!({});
        assert!(check(&before).is_empty());
        before["metadata"]["annotations"] = json!({MIRROR_POD: "x"});
        assert_eq!(
            check(&before),
            [": Forbidden: static pods cannot be resized"]
        );
    }

    #[test]
    fn resize_policies() {
        let check = |policy: Value| {
            let spec = json!({"restartPolicy": policy});
            let container = json!({"resizePolicy": [
                {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
                {"resourceName": "cpu", "restartPolicy": ""},
                {"resourceName": "disk", "restartPolicy": "Maybe"},
            ]});
            let (spec, container) = (spec.as_object().unwrap(), container.as_object().unwrap());
            let mut causes = CauseList::new();
            policies(spec, container, "p", &mut causes);
            texts(&causes)
        };
        let found = check(json!("Always"));
        let expected = [
            "p.resizePolicy[1]: Duplicate value: \"cpu\"",
            "p.resizePolicy: Required value",
            "p.resizePolicy: Unsupported value: \"disk\": supported values: \"cpu\", \"memory\"",
            "p.resizePolicy: Unsupported value: \"Maybe\": supported values: \"NotRequired\", \
             \"RestartContainer\"",
        ];
        assert_eq!(found, expected);
        assert_eq!(check(json!("Never")).len(), 7);
    }
}
