//! Checks that a queue of Kueue would admit a plan now.

use std::collections::BTreeMap;

use longshore_client::{Cluster, Error};
use longshore_diagnosis::{
    explain::Cause,
    fit::{self, exact, people},
};
use longshore_model::facts::Condition;
use serde::Deserialize;

use super::{Finding, LIMIT, Needs, Room};
use crate::{kueue, queries};

/// The maximum rounding error of sums of amounts.
const TOLERANCE: f64 = 1e-6;

/// A queue, if it can be read.
#[derive(Debug, Default)]
pub(super) struct State {
    local: Option<LocalQueue>,
    quota: Option<ClusterQueue>,
    /// The reason why something is missing.
    problem: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LocalQueue {
    spec: LocalSpec,
    status: LocalStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LocalSpec {
    cluster_queue: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LocalStatus {
    conditions: Vec<Condition>,
    pending_workloads: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClusterQueue {
    spec: Quota,
    status: Reserved,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Quota {
    resource_groups: Vec<Group>,
    /// The cohort by its name in v1beta1. Its queues lend each other quota.
    cohort: String,
    cohort_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Group {
    flavors: Vec<Flavor>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Reserved {
    flavors_reservation: Vec<Flavor>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Flavor {
    name: String,
    resources: Vec<Amount>,
}

/// A quota, or the reserved part of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Amount {
    name: String,
    nominal_quota: Option<Number>,
    total: Option<Number>,
}

/// A quantity, which may also be a number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Number(f64),
}

impl Number {
    fn value(&self) -> f64 {
        match self {
            Self::Text(text) => text
                .parse::<longshore_model::Quantity>()
                .map_or(0.0, |quantity| quantity.value()),
            Self::Number(number) => *number,
        }
    }
}

/// Reads the queue and its quota.
pub(super) async fn state(cluster: &Cluster, namespace: &str, name: &str) -> State {
    let local = async {
        let Some(version) = kueue::version(cluster).await? else {
            return Ok(None);
        };
        let path = format!("/apis/{version}/namespaces/{namespace}/localqueues/{name}");
        let found: LocalQueue = read(cluster, &path).await?;
        Ok(Some((version, found)))
    };
    let (version, local) = match queries::seen("localqueues", LIMIT, local).await {
        (Some(Some(found)), _) => found,
        (_, problem) => {
            return State {
                problem,
                ..State::default()
            };
        }
    };
    let path = format!("/apis/{version}/clusterqueues/{}", local.spec.cluster_queue);
    let (quota, problem) = queries::seen("clusterqueues", LIMIT, read(cluster, &path)).await;
    State {
        local: Some(local),
        quota,
        problem,
    }
}

async fn read<T: serde::de::DeserializeOwned>(cluster: &Cluster, path: &str) -> Result<T, Error> {
    let object = cluster.proxy().get(path, &[]).await?;
    serde_json::from_value(object).map_err(|error| Error::Decode {
        what: path.to_owned(),
        problem: error.to_string(),
    })
}

/// Checks that the queue has the quota for all tasks now.
pub(super) fn room(name: &str, state: &State, needs: &Needs) -> Room {
    let unknown = |why: &str| Room::Unknown(format!("quota of the queue {name:?}: {why}"));
    let Some(local) = &state.local else {
        return unknown(
            state
                .problem
                .as_deref()
                .unwrap_or("the queue is not readable"),
        );
    };
    let later = |problem: String, then: &str| {
        let problem = format!("the queue {name:?} {problem}");
        Room::Later(Finding::new(Cause::Queued, problem, then))
    };
    let mut conditions = local.status.conditions.iter();
    if let Some(stopped) =
        conditions.find(|condition| condition.kind == "Active" && condition.status == "False")
    {
        let problem = format!("admits nothing: {}", stopped.message);
        return later(problem, "the run waits until an administrator changes this");
    }
    if local.status.pending_workloads > 0 {
        let problem = match local.status.pending_workloads {
            1 => "has a workload that waits".to_owned(),
            count => format!("has {count} workloads that wait"),
        };
        return later(problem, "the run waits after them");
    }
    let Some(quota) = &state.quota else {
        return unknown(state.problem.as_deref().unwrap_or("it is not readable"));
    };
    let Some((resource, asks, free)) = shortage(quota, needs) else {
        return Room::Free;
    };
    if !quota.spec.cohort.is_empty() || !quota.spec.cohort_name.is_empty() {
        return unknown("it may borrow from the queues of its cohort");
    }
    let amount = |number: f64| people(&resource, &exact(number));
    let problem = format!(
        "has {} of {resource} left, and the run requests {}",
        amount(free.max(0.0)),
        amount(asks)
    );
    later(problem, "the run waits until other runs in the queue end")
}

/// The first resource with too little remaining quota, the amount that the run requests, and the
/// remaining amount.
fn shortage(quota: &ClusterQueue, needs: &Needs) -> Option<(String, f64, f64)> {
    // The remaining quota by resource and flavor.
    let mut left: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    let groups = quota.spec.resource_groups.iter();
    for flavor in groups.flat_map(|group| &group.flavors) {
        for amount in &flavor.resources {
            let number = amount.nominal_quota.as_ref().map_or(0.0, Number::value);
            let of_resource = left.entry(&amount.name).or_default();
            *of_resource.entry(&flavor.name).or_default() += number;
        }
    }
    for flavor in &quota.status.flavors_reservation {
        for amount in &flavor.resources {
            let of_resource = left.get_mut(amount.name.as_str());
            let rest = of_resource.and_then(|flavors| flavors.get_mut(flavor.name.as_str()));
            if let Some(rest) = rest {
                *rest -= amount.total.as_ref().map_or(0.0, Number::value);
            }
        }
    }
    let mut asked = needs.requests();
    asked.insert("pods".to_owned(), needs.pods());
    let of_all = asked.into_iter().find_map(|(name, asks)| {
        let free = left.get(name.as_str())?.values().sum();
        (asks > free + TOLERANCE).then_some((name, asks, free))
    });
    // Kueue gives all tasks of a role the same flavor.
    let of_roles = needs.roles.iter().flat_map(|role| {
        let tasks = f64::from(role.tasks);
        let requests = fit::requests(&role.spec).into_iter();
        requests.map(move |(name, number)| (name, number * tasks))
    });
    of_all.or_else(|| {
        of_roles.into_iter().find_map(|(name, asks)| {
            let flavors = left.get(name.as_str())?.values();
            let free = flavors.copied().fold(0.0, f64::max);
            (asks > free + TOLERANCE).then_some((name, asks, free))
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::preflight::needs::RoleNeed;

    /// Two tasks that request a CPU each.
    fn needs() -> Needs {
        let resources = json!({"requests": {"cpu": "1"}});
        let spec = json!({"containers": [{"name": "main", "resources": resources}]});
        Needs {
            roles: vec![RoleNeed {
                name: "worker".into(),
                tasks: 2,
                spec: serde_json::from_value(spec).unwrap(),
            }],
            ..Needs::default()
        }
    }

    fn state(local: Value, quota: Option<Value>) -> State {
        State {
            local: Some(serde_json::from_value(local).unwrap()),
            quota: quota.map(|quota| serde_json::from_value(quota).unwrap()),
            problem: Some("no permission to list them".to_owned()),
        }
    }

    /// A quota of 4 CPUs in two flavors, 3 of `large` and 1 of `small`, of which `used` of `large`
    /// are reserved.
    fn quota(used: &str, spec: Value) -> Value {
        let flavor = |name: &str, key: &str, amount: &str| json!({"name": name, "resources": [{"name": "cpu", key: amount}]});
        let mut spec = spec;
        spec["resourceGroups"] = json!([{"flavors": [
            flavor("large", "nominalQuota", "3"), flavor("small", "nominalQuota", "1"),
        ]}]);
        json!({"spec": spec, "status": {"flavorsReservation": [flavor("large", "total", used)]}})
    }

    fn verdict(local: Value, quota: Option<Value>) -> String {
        match room("team", &state(local, quota), &needs()) {
            Room::Free => "free".to_owned(),
            Room::Later(finding) => finding.problem,
            Room::Unknown(why) => why,
        }
    }

    #[test]
    fn quotas() {
        let idle = || json!({"status": {"pendingWorkloads": 0}});
        assert_eq!(verdict(idle(), Some(quota("1", json!({})))), "free");
        // Both tasks get the same flavor.
        assert_eq!(
            verdict(idle(), Some(quota("2", json!({})))),
            "the queue \"team\" has 1 of cpu left, and the run requests 2"
        );
        assert_eq!(
            verdict(idle(), Some(quota("2500m", json!({})))),
            "the queue \"team\" has 1500m of cpu left, and the run requests 2"
        );
        for cohort in [json!({"cohort": "all"}), json!({"cohortName": "all"})] {
            let text = verdict(idle(), Some(quota("4", cohort)));
            assert!(text.contains("borrow"), "{text}");
        }
        let text = verdict(idle(), None);
        assert!(text.contains("no permission"), "{text}");
    }

    #[test]
    fn queues_that_admit_nothing_now() {
        let waits = json!({"status": {"pendingWorkloads": 2}});
        let text = verdict(waits, Some(quota("0", json!({}))));
        assert!(text.contains("2 workloads that wait"), "{text}");
        let stopped = json!({"status": {"conditions": [
            {"type": "Active", "status": "False", "message": "ClusterQueue is stopped"},
        ]}});
        let text = verdict(stopped, None);
        assert!(
            text.contains("admits nothing: ClusterQueue is stopped"),
            "{text}"
        );
    }
}
