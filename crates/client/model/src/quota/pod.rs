//! The resources that a pod uses.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::names::{HUGE_PAGES, REQUESTS, is_extended};
use crate::{
    meta::null_as_default,
    quantity::{Amount, Amounts},
    resources::{PodResources, Requirements, add, raise},
};

/// The resources that containers must specify if a quota limits them.
const REQUIRED: &[&str] = &[
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

/// A pod, as far as quotas depend on it.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(super) struct Pod {
    metadata: Metadata,
    #[serde(deserialize_with = "null_as_default")]
    spec: Spec,
    #[serde(deserialize_with = "null_as_default")]
    status: Status,
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    deletion_timestamp: Option<Timestamp>,
    deletion_grace_period_seconds: Option<i64>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(flatten)]
    resources: PodResources,
    active_deadline_seconds: Option<i64>,
    priority_class_name: Option<String>,
    affinity: Option<Value>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Option<String>,
    qos_class: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "null_as_default")]
    init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
}

/// The resources of a container as reported by the node.
#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    allocated_resources: Option<Amounts>,
    resources: Option<ActualResources>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct ActualResources {
    requests: Option<Amounts>,
    limits: Option<Amounts>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Condition {
    r#type: String,
    reason: String,
}

impl Status {
    fn of_container(&self, name: &str) -> Option<&ContainerStatus> {
        let mut all = self
            .container_statuses
            .iter()
            .chain(&self.init_container_statuses);
        all.find(|status| status.name == name)
    }

    fn is_resize_infeasible(&self) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|one| one.r#type == "PodResizePending" && one.reason == "Infeasible")
    }
}

impl Pod {
    pub(super) fn of(object: &Map<String, Value>) -> Self {
        // The API server has validated the pod.
        Self::deserialize(object).unwrap_or_default()
    }

    pub(super) fn has_deadline(&self) -> bool {
        self.spec
            .active_deadline_seconds
            .is_some_and(|deadline| deadline >= 0)
    }

    pub(super) fn is_best_effort(&self) -> bool {
        match self.status.qos_class.as_deref() {
            Some(class) if !class.is_empty() => class == "BestEffort",
            _ => self.spec.resources.is_best_effort(),
        }
    }

    pub(super) fn priority_class(&self) -> &str {
        self.spec.priority_class_name.as_deref().unwrap_or_default()
    }

    pub(super) fn has_cross_namespace_affinity(&self) -> bool {
        let crosses = |term: &Value| {
            let listed = term["namespaces"]
                .as_array()
                .is_some_and(|list| !list.is_empty());
            listed || term["namespaceSelector"].is_object()
        };
        let affinity = self.spec.affinity.as_ref().unwrap_or(&Value::Null);
        ["podAffinity", "podAntiAffinity"].iter().any(|field| {
            let list = |name: &str| affinity[field][name].as_array().into_iter().flatten();
            list("requiredDuringSchedulingIgnoredDuringExecution").any(crosses)
                || list("preferredDuringSchedulingIgnoredDuringExecution")
                    .any(|weighted| crosses(&weighted["podAffinityTerm"]))
        })
    }

    /// Returns true if it uses resources: it has not ended, and its grace period is not over.
    fn is_active(&self, now: Timestamp) -> bool {
        if matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed")) {
            return false;
        }
        let meta = &self.metadata;
        let Some((at, grace)) = meta
            .deletion_timestamp
            .zip(meta.deletion_grace_period_seconds)
        else {
            return true;
        };
        let end = at.checked_add(SignedDuration::from_secs(grace));
        end.is_ok_and(|end| now <= end)
    }

    pub(super) fn usage(&self, now: Timestamp) -> Amounts {
        // All stored pods count as objects.
        let mut usage = Amounts::from([("count/pods".to_owned(), Amount::of(1))]);
        if self.is_active(now) {
            add(&mut usage, &of_requirements(&self.total()));
        }
        usage
    }

    /// The resources that a quota counts: the pod's requests and limits. While the pod is resized,
    /// amounts that the node has allocated and set count if they are higher. Amounts that the node
    /// can never allocate do not count.
    fn total(&self) -> Requirements {
        let of = |resources: &PodResources| Requirements {
            requests: resources.requests_with_overhead(),
            limits: resources.limits_with_overhead(),
        };
        let own = of(&self.spec.resources);
        let allocated = self.with_status(|resources, status| {
            if let Some(allocated) = &status.allocated_resources {
                resources.requests.clone_from(allocated);
            }
        });
        let actual = self.with_status(|resources, status| {
            let actual = status.resources.as_ref();
            let requests = actual.and_then(|actual| actual.requests.as_ref());
            if let Some(requests) = requests.or(status.allocated_resources.as_ref()) {
                resources.requests.clone_from(requests);
            }
            if let Some(limits) = actual.and_then(|actual| actual.limits.as_ref()) {
                resources.limits.clone_from(limits);
            }
        });
        if allocated == self.spec.resources && actual == self.spec.resources {
            return own;
        }
        let (allocated, mut most) = (of(&allocated), of(&actual));
        raise(&mut most.requests, &allocated.requests);
        if !self.status.is_resize_infeasible() {
            raise(&mut most.requests, &own.requests);
            raise(&mut most.limits, &own.limits);
        }
        most
    }

    /// Returns the resources of the spec after `set` has applied the node's report about each
    /// container.
    fn with_status(&self, set: impl Fn(&mut Requirements, &ContainerStatus)) -> PodResources {
        let mut resources = self.spec.resources.clone();
        let infeasible = self.status.is_resize_infeasible();
        let containers = resources.containers.iter_mut();
        for container in containers.chain(&mut resources.init_containers) {
            if infeasible {
                container.resources = Requirements::default();
            }
            if let Some(status) = self.status.of_container(&container.name) {
                set(&mut container.resources, status);
            }
        }
        resources
    }

    /// Returns the resources that containers must specify but do not, in the text of Kubernetes'
    /// message.
    pub(super) fn missing(&self, limited: &BTreeSet<String>) -> Option<String> {
        let pod = &self.spec.resources;
        if pod.has_pod_level() {
            return None;
        }
        let required = || limited.iter().filter(|name| REQUIRED.contains(&&***name));
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for container in pod.all_containers() {
            let specified = of_requirements(&container.resources);
            for name in required().filter(|name| !specified.contains_key(*name)) {
                missing.entry(name).or_default().insert(&container.name);
            }
        }
        let texts = missing.into_iter().map(|(resource, containers)| {
            let containers: Vec<&str> = containers.into_iter().collect();
            format!("{resource} for: {}", containers.join(","))
        });
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| format!("must specify {}", texts.join("; ")))
    }
}

/// The resources in the names of quotas.
fn of_requirements(resources: &Requirements) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), Amount::of(1))]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = resources.requests.get(name) {
            usage.insert(name.to_owned(), *request);
            usage.insert(format!("{REQUESTS}{name}"), *request);
        }
        if let Some(limit) = resources.limits.get(name) {
            usage.insert(format!("limits.{name}"), *limit);
        }
    }
    for (name, request) in &resources.requests {
        let is_huge = name.starts_with(HUGE_PAGES);
        if is_huge {
            usage.insert(name.clone(), *request);
        }
        if is_huge || is_extended(name) {
            usage.insert(format!("{REQUESTS}{name}"), *request);
        }
    }
    usage
}
