//! Decides what a resize of a pod changes. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as Text,
};
use longshore_model::{quantity::Amount, resources::PodResources, time::seconds};
use serde_json::{Map, Value, json};

const PENDING: &str = "PodResizePending";
const IN_PROGRESS: &str = "PodResizeInProgress";

/// The resources that the node has allocated to a pod and its containers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Allocation {
    containers: BTreeMap<String, ResourceRequirements>,
    pod: Option<ResourceRequirements>,
}

impl Allocation {
    /// Returns the resources in the spec of a pod.
    pub(crate) fn of_spec(spec: &PodSpec) -> Self {
        let of = |container: &Container| {
            let resources = container.resources.clone().unwrap_or_default();
            (container.name.clone(), resources)
        };
        Self {
            containers: containers(spec).map(of).collect(),
            pod: spec.resources.clone(),
        }
    }

    /// Returns the resources that an earlier agent allocated according to the pod's status.
    /// Resources that the status lacks come from the spec.
    pub(crate) fn restored(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else {
            return Self::default();
        };
        let mut allocation = Self::of_spec(spec);
        let statuses = pod.status.iter().flat_map(|status| {
            let inits = status.init_container_statuses.iter().flatten();
            status.container_statuses.iter().flatten().chain(inits)
        });
        for status in statuses {
            if let Some(reported) = &status.resources
                && let Some(resources) = allocation.containers.get_mut(&status.name)
            {
                let allocated = status.allocated_resources.clone();
                resources.requests = allocated.or_else(|| reported.requests.clone());
                resources.limits.clone_from(&reported.limits);
            }
        }
        allocation
    }

    /// Returns the resources of the pod itself.
    pub(crate) fn of_pod(&self) -> Option<&ResourceRequirements> {
        self.pod.as_ref()
    }

    /// Returns the resources of a container.
    pub(crate) fn of_container(&self, name: &str) -> ResourceRequirements {
        self.containers.get(name).cloned().unwrap_or_default()
    }

    /// Returns true if both have equal amounts, in any notation.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let none = ResourceRequirements::default();
        let equal = |one: &Option<ResourceRequirements>, other: &Option<ResourceRequirements>| {
            are_equal(
                one.as_ref().unwrap_or(&none),
                other.as_ref().unwrap_or(&none),
            )
        };
        self.containers.len() == other.containers.len()
            && self.containers.iter().all(|(name, one)| {
                let other = other.containers.get(name);
                other.is_some_and(|other| are_equal(one, other))
            })
            && equal(&self.pod, &other.pod)
    }

    /// Returns the requests and limits of a pod with this allocation.
    pub(crate) fn resources(&self, spec: &PodSpec) -> PodResources {
        let has_any = |resources: &ResourceRequirements| {
            resources.limits.is_some() || resources.requests.is_some()
        };
        let overhead = spec.overhead.as_ref();
        // Most pods have none.
        if !self.containers.values().chain(&self.pod).any(has_any) && overhead.is_none() {
            return PodResources::default();
        }
        let list = |containers: &[Container]| -> Value {
            let containers = containers.iter().map(|container| {
                json!({
                    "name": container.name,
                    "resources": self.of_container(&container.name),
                    "restartPolicy": container.restart_policy,
                })
            });
            containers.collect()
        };
        let spec = json!({
            "containers": list(&spec.containers),
            "initContainers": list(spec.init_containers.as_deref().unwrap_or_default()),
            "resources": self.pod,
            "overhead": overhead,
        });
        // The API server has validated the quantities. Parsed from bytes, as the client does, so
        // that the code that parses the type is compiled once.
        serde_json::from_slice(spec.to_string().as_bytes()).unwrap_or_default()
    }
}

fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let inits = spec.init_containers.iter().flatten();
    spec.containers.iter().chain(inits)
}

fn amount(of: Option<&BTreeMap<String, Text>>, name: &str) -> Option<Amount> {
    of?.get(name)?.0.parse().ok()
}

/// Returns true if the requests and limits of a resource are equal.
fn is_equal(one: &ResourceRequirements, other: &ResourceRequirements, name: &str) -> bool {
    let equal = |one, other| amount(one, name) == amount(other, name);
    equal(one.requests.as_ref(), other.requests.as_ref())
        && equal(one.limits.as_ref(), other.limits.as_ref())
}

fn are_equal(one: &ResourceRequirements, other: &ResourceRequirements) -> bool {
    ["cpu", "memory"]
        .iter()
        .all(|name| is_equal(one, other, name))
}

/// The way in which a container's resources change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    InPlace,
    /// Required by the container's `resizePolicy`.
    Restart,
}

/// Returns the change from the actual to the allocated resources of a running container.
pub(crate) fn change(
    container: &Container,
    actual: &ResourceRequirements,
    allocated: &ResourceRequirements,
) -> Change {
    let mut change = Change::None;
    for name in ["cpu", "memory"] {
        if is_equal(actual, allocated, name) {
            continue;
        }
        let mut policies = container.resize_policy.iter().flatten();
        let restarts = policies.any(|policy| {
            policy.resource_name == name && policy.restart_policy == "RestartContainer"
        });
        if restarts {
            return Change::Restart;
        }
        change = Change::InPlace;
    }
    change
}

/// The state of a resize, which conditions report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resize {
    /// The generation of the pod whose resize has to wait, and the reason.
    pub(crate) pending: Option<(i64, String)>,
    /// The generation to which the pod is resized, and the error of the last attempt.
    pub(crate) in_progress: Option<(i64, Option<String>)>,
}

impl Resize {
    /// Renders the conditions. Conditions in `before` that no longer hold are deleted.
    pub(crate) fn conditions(&self, before: &[Value], now: Timestamp) -> Vec<Value> {
        let pending = self.pending.as_ref().map(|(generation, message)| {
            let texts = Some(("Deferred", message.as_str()));
            condition(PENDING, *generation, texts, before, now)
        });
        let in_progress = self.in_progress.as_ref().map(|(generation, error)| {
            let texts = error.as_deref().map(|error| ("Error", error));
            condition(IN_PROGRESS, *generation, texts, before, now)
        });
        let deleted = |kind: &str| {
            let had = before.iter().any(|condition| condition["type"] == kind);
            had.then(|| json!({"type": kind, "$patch": "delete"}))
        };
        let pending = pending.or_else(|| deleted(PENDING));
        let in_progress = in_progress.or_else(|| deleted(IN_PROGRESS));
        pending.into_iter().chain(in_progress).collect()
    }
}

fn condition(
    kind: &str,
    generation: i64,
    texts: Option<(&str, &str)>,
    before: &[Value],
    now: Timestamp,
) -> Value {
    let known = before.iter().find(|condition| condition["type"] == kind);
    let since = known.map(|condition| condition["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": kind,
        "status": "True",
        "observedGeneration": generation,
        "lastTransitionTime": since.unwrap_or_else(|| seconds(now).into()),
    });
    let texts = [
        ("reason", texts.map(|(reason, _)| reason)),
        ("message", texts.map(|(_, message)| message)),
    ];
    for (field, text) in texts {
        let had = known.is_some_and(|condition| condition[field].is_string());
        match text {
            Some(text) => condition[field] = text.into(),
            None if had => condition[field] = Value::Null,
            None => {}
        }
    }
    condition
}

/// Returns the message of an event about a resize, in the format of the kubelet.
pub(crate) fn event_message(
    prefix: &str,
    allocation: &Allocation,
    spec: &PodSpec,
    generation: i64,
    error: Option<&str>,
) -> String {
    let list = |containers: &[Container]| -> Value {
        let containers = containers.iter().map(|container| {
            let resources = allocation.of_container(&container.name);
            json!({"name": container.name, "resources": resources})
        });
        containers.collect()
    };
    let mut summary = Map::new();
    let inits = spec.init_containers.as_deref().unwrap_or_default();
    for (name, containers) in [
        ("initContainers", inits),
        ("containers", spec.containers.as_slice()),
    ] {
        if !containers.is_empty() {
            summary.insert(name.to_owned(), list(containers));
        }
    }
    summary.insert("generation".to_owned(), generation.into());
    if let Some(error) = error {
        summary.insert("error".to_owned(), error.into());
    }
    format!("{prefix}: {}", Value::Object(summary))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spec(value: Value) -> PodSpec {
        serde_json::from_value(value).unwrap()
    }

    fn container(cpu: &str, memory: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": {"memory": memory}}})
    }

    fn allocation(cpu: &str, memory: &str) -> Allocation {
        Allocation::of_spec(&spec(json!({"containers": [container(cpu, memory)]})))
    }

    #[test]
    fn amounts_are_compared_in_any_notation() {
        let one = allocation("1", "1Gi");
        assert!(one.is_same(&allocation("1000m", "1024Mi")));
        assert!(!one.is_same(&allocation("1", "1G")));
        assert!(!one.is_same(&Allocation::default()));
        let mut other = one.clone();
        other.pod = Some(ResourceRequirements::default());
        assert!(one.is_same(&other));
    }

    #[test]
    fn policies_decide_whether_a_container_restarts() {
        let mut one = container("1", "1Gi");
        one["resizePolicy"] =
            json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
        let found: Container = serde_json::from_value(one).unwrap();
        let actual = allocation("1", "1Gi").of_container("c");
        let change = |cpu, memory| {
            let allocated = allocation(cpu, memory).of_container("c");
            change(&found, &actual, &allocated)
        };
        assert_eq!(change("1000m", "1Gi"), Change::None);
        assert_eq!(change("2", "1Gi"), Change::InPlace);
        assert_eq!(change("2", "2Gi"), Change::Restart);
    }

    #[test]
    fn resources_of_a_pod_are_those_allocated() {
        let requested = spec(json!({"containers": [container("3", "3Gi")]}));
        let resources = allocation("1", "1Gi").resources(&requested);
        assert_eq!(resources.requests()["cpu"].to_string(), "1");
        assert_eq!(resources.limits()["memory"].to_string(), "1Gi");
        let none = spec(json!({"containers": [{"name": "c"}]}));
        assert!(Allocation::of_spec(&none).resources(&none).is_best_effort());
    }

    #[test]
    fn an_allocation_is_restored_from_the_status() {
        let pod = json!({
            "metadata": {},
            "spec": {"containers": [container("3", "3Gi")]},
            "status": {"containerStatuses": [{
                "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                "allocatedResources": {"cpu": "1"},
                "resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}},
            }]},
        });
        let mut pod: Pod = serde_json::from_value(pod).unwrap();
        assert!(Allocation::restored(&pod).is_same(&allocation("1", "1Gi")));
        pod.status = None;
        assert!(Allocation::restored(&pod).is_same(&allocation("3", "3Gi")));
    }

    #[test]
    fn conditions_appear_and_are_deleted() {
        let now = Timestamp::UNIX_EPOCH;
        let resize = Resize {
            pending: Some((2, "full".to_owned())),
            in_progress: Some((1, None)),
        };
        let found = resize.conditions(&[], now);
        assert_eq!(found[0]["type"], "PodResizePending");
        assert_eq!(found[0]["reason"], "Deferred");
        assert_eq!(found[0]["observedGeneration"], 2);
        assert!(found[1].get("reason").is_none());
        let gone = Resize::default().conditions(&found, now);
        let deleted = json!({"type": "PodResizeInProgress", "$patch": "delete"});
        assert_eq!(gone[1], deleted);
        assert!(Resize::default().conditions(&[], now).is_empty());
        let failed = Resize {
            in_progress: Some((1, Some("no".to_owned()))),
            ..Resize::default()
        };
        let found = failed.conditions(&[], now);
        assert_eq!(found[0]["reason"], "Error");
        let resumed = resize.conditions(&found, now);
        assert_eq!(resumed[1]["message"], Value::Null);
    }

    #[test]
    fn events_have_the_form_of_the_kubelet() {
        let spec = spec(json!({"containers": [container("1", "1Gi")]}));
        let text = event_message(
            "Pod resize started",
            &allocation("1", "1Gi"),
            &spec,
            2,
            None,
        );
        assert!(
            text.starts_with("Pod resize started: {\"containers\":[{"),
            "{text}"
        );
        assert!(text.ends_with("\"generation\":2}"), "{text}");
    }
}
