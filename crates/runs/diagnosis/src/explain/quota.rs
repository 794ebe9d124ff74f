//! Checks a namespace's quotas.

use std::collections::BTreeMap;

use crate::{evidence::QuotaEvidence, fit};
use longshore_model::facts::{PodSpec, Quantities, quantity};

/// The resources that count against quotas.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demand {
    /// The number of pods that run at the same time.
    pub pods: f64,
    /// The sums of the pods' requests.
    pub requests: BTreeMap<String, f64>,
    /// The sums of the pods' limits.
    pub limits: BTreeMap<String, f64>,
    /// The number of created objects of each kind, by their names in quotas.
    pub objects: BTreeMap<String, f64>,
}

impl Demand {
    /// The demand of one pod.
    fn of_pod(spec: &PodSpec) -> Self {
        Self {
            pods: 1.0,
            requests: fit::requests(spec),
            limits: fit::limits(spec),
            objects: BTreeMap::new(),
        }
    }

    fn of_pods(&self, name: &str) -> Option<f64> {
        if name == "pods" {
            return Some(self.pods);
        }
        if let Some(resource) = name.strip_prefix("limits.") {
            return self.limits.get(resource).copied();
        }
        let resource = name.strip_prefix("requests.").unwrap_or(name);
        self.requests.get(resource).copied()
    }
}

/// A quota that does not allow the demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The problem, in one sentence.
    pub problem: String,
    /// The recommended action.
    pub remedy: String,
    /// True if the object cannot be created now, or the pods can never be created. Otherwise, the
    /// pods are created as soon as the quota has capacity.
    pub is_refused: bool,
}

/// The first quota that does not allow one more pod, preferably a quota that never will.
pub(crate) fn full(spec: &PodSpec, quotas: &[QuotaEvidence]) -> Option<Shortage> {
    let demand = Demand::of_pod(spec);
    let counted = quotas.iter().filter(|quota| counts(quota, spec));
    let shortages = counted.flat_map(|quota| {
        let names = quota.status.hard.keys();
        names.filter_map(|name| shortage(&demand, quota, name, "a task"))
    });
    let (refused, later): (Vec<_>, Vec<_>) = shortages.partition(|found| found.is_refused);
    refused.into_iter().chain(later).next()
}

/// Returns true if a quota, which may have scopes, counts pods of this spec.
#[must_use]
pub fn counts(quota: &QuotaEvidence, spec: &PodSpec) -> bool {
    let ends = spec.active_deadline_seconds.is_some();
    let mut all = spec.containers.iter().chain(&spec.init_containers);
    let best_effort = all.all(|container| {
        let plain =
            |amounts: &Quantities| !amounts.contains_key("cpu") && !amounts.contains_key("memory");
        plain(&container.resources.requests) && plain(&container.resources.limits)
    });
    let scope = |scope: &str| match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => !spec.priority_class_name.is_empty(),
        // The server checks other scopes.
        _ => false,
    };
    let priority = spec.priority_class_name.as_str();
    let rule = |rule: &serde_json::Value| {
        let name = rule["scopeName"].as_str().unwrap_or_default();
        let values = rule["values"].as_array().into_iter().flatten();
        let is_one = values.into_iter().any(|value| value == priority);
        match (name, rule["operator"].as_str().unwrap_or_default()) {
            ("PriorityClass", "In") => is_one,
            ("PriorityClass", "NotIn") => !is_one,
            ("PriorityClass", "DoesNotExist") => priority.is_empty(),
            (name, _) => scope(name),
        }
    };
    let rules = quota.spec.scope_selector["matchExpressions"].as_array();
    quota.spec.scopes.iter().all(|name| scope(name)) && rules.into_iter().flatten().all(rule)
}

/// Checks the demand for one resource name of a quota. `who` is the requester in the message.
#[must_use]
pub fn shortage(demand: &Demand, quota: &QuotaEvidence, name: &str, who: &str) -> Option<Shortage> {
    let hard = quantity(&quota.status.hard, name)?;
    let used = quantity(&quota.status.used, name).unwrap_or(0.0);
    let object = name.strip_prefix("count/").unwrap_or(name);
    let is_object = demand.objects.contains_key(object);
    let scoped = !quota.spec.scopes.is_empty() || !quota.spec.scope_selector.is_null();
    let wanted = if is_object && !scoped {
        demand.objects.get(object).copied()
    } else {
        demand.of_pods(object)
    };
    let wanted = wanted.filter(|wanted| *wanted > 0.0)?;
    let text = |number: f64| fit::people(name, &fit::exact(number));
    let quota_name = &quota.metadata.name;
    // Sums of fractions are not exact to the last digit.
    let over = |bound: f64| wanted > bound + 1e-6;
    if over(hard) {
        return Some(Shortage {
            problem: format!(
                "the quota {quota_name:?} allows {} of {name} in total, and {who} needs {}",
                text(hard),
                text(wanted)
            ),
            remedy: format!("{}, or have the quota raised", less(name)),
            is_refused: true,
        });
    }
    if !over(hard - used) {
        return None;
    }
    let left = text((hard - used).max(0.0));
    let problem = format!(
        "the quota {quota_name:?} leaves {left} of {name} ({} of {} are used), and {who} needs {}",
        text(used),
        text(hard),
        text(wanted)
    );
    let remedy = match is_object {
        true => format!("delete {object} that are not needed, or have the quota raised"),
        false => format!(
            "some of its tasks wait until others finish; or {}",
            less(name)
        ),
    };
    Some(Shortage {
        problem,
        remedy,
        is_refused: is_object,
    })
}

/// The remedy that reduces the demand.
fn less(name: &str) -> String {
    match name {
        "pods" | "count/pods" => "run fewer tasks".to_owned(),
        name => format!("request less {name}"),
    }
}
