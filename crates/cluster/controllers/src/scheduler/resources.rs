//! The resource requests of pods and the allocatable resources of nodes.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, ContainerStatus, PodSpec, PodStatus, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as Text,
};
use longshore_model::Quantity;

/// Amounts by resource name, in thousandths: `cpu` in millicores, `memory` in thousandths of a
/// byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Amounts(pub(crate) BTreeMap<String, i128>);

impl Amounts {
    /// Reads a map of quantities. An invalid quantity counts as zero.
    pub(crate) fn of(map: Option<&BTreeMap<String, Text>>) -> Self {
        let amount = |text: &Text| match text.0.parse::<Quantity>() {
            Ok(quantity) => thousandths(quantity.value()),
            Err(error) => {
                tracing::warn!(%error, "cannot read a quantity");
                0
            }
        };
        Self(
            map.into_iter()
                .flatten()
                .map(|(name, text)| (name.clone(), amount(text)))
                .collect(),
        )
    }

    /// Returns the amount of a resource; 0 if it is not in the map.
    pub(crate) fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds amounts.
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_insert(0);
            *own = own.saturating_add(*amount);
        }
    }

    /// Subtracts amounts.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_insert(0);
            *own = own.saturating_sub(*amount);
        }
    }

    /// Raises each amount to at least the other's amount.
    fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_insert(0);
            *own = (*own).max(*amount);
        }
    }
}

/// The maximum amount in thousandths; larger amounts are reduced to it. The sum over all possible
/// containers and pods stays far below the maximum of `i128`, so that added amounts can be
/// subtracted again.
const MAX_AMOUNT: i128 = 1 << 80;

/// Converts a value to thousandths and rounds it up, as Kubernetes does. A value
/// that is whole except for a floating-point error is not rounded up.
fn thousandths(value: f64) -> i128 {
    let exact = value * 1000.0;
    let near = exact.round();
    let whole = if (exact - near).abs() <= exact.abs() * 1e-12 {
        near
    } else {
        exact.ceil()
    };
    #[allow(clippy::cast_possible_truncation, reason = "saturation is intended")]
    {
        (whole as i128).clamp(-MAX_AMOUNT, MAX_AMOUNT)
    }
}

/// Returns the requests. A resource without a request uses its limit.
fn requests(resources: Option<&ResourceRequirements>) -> Amounts {
    let Some(resources) = resources else {
        return Amounts::default();
    };
    let mut amounts = Amounts::of(resources.limits.as_ref());
    amounts.0.extend(Amounts::of(resources.requests.as_ref()).0);
    amounts
}

/// Returns the requests of a pod: the sum of its containers and sidecars, or the largest init
/// container if that is more, plus the overhead. Pod-level requests take precedence.
pub(crate) fn of_pod(spec: &PodSpec) -> Amounts {
    total(spec, |container| requests(container.resources.as_ref()))
}

/// Returns the resources that a pod occupies on its node during a resize: the maximum of its
/// requests, of the resources that the node has allocated to its containers, and of the resources
/// that the containers have. Requests that the node can never allocate do not count.
pub(crate) fn occupied_by(spec: &PodSpec, status: Option<&PodStatus>) -> Amounts {
    let statuses = |status: &'_ PodStatus| -> Vec<ContainerStatus> {
        let lists = [&status.container_statuses, &status.init_container_statuses];
        let all = lists.into_iter().flat_map(|list| list.iter().flatten());
        all.cloned().collect()
    };
    let own = of_pod(spec);
    let Some(status) = status.filter(|status| is_resized(spec, status)) else {
        return own;
    };
    let statuses = statuses(status);
    let find = |container: &Container| {
        let mut all = statuses.iter();
        all.find(|status| status.name == container.name)
    };
    let infeasible = status.conditions.iter().flatten().any(|condition| {
        condition.type_ == "PodResizePending" && condition.reason.as_deref() == Some("Infeasible")
    });
    let unknown = |container: &Container| match infeasible {
        true => Amounts::default(),
        false => requests(container.resources.as_ref()),
    };
    let allocated = |container: &Container| {
        let amounts = find(container).and_then(|status| status.allocated_resources.as_ref());
        match amounts {
            Some(amounts) => Amounts::of(Some(amounts)),
            None => unknown(container),
        }
    };
    let actual = |container: &Container| {
        let resources = find(container).and_then(|status| status.resources.as_ref());
        match resources.and_then(|resources| resources.requests.as_ref()) {
            Some(amounts) => Amounts::of(Some(amounts)),
            None => allocated(container),
        }
    };
    let mut most = total(spec, allocated);
    most.raise(&total(spec, actual));
    if !infeasible {
        most.raise(&own);
    }
    most
}

/// Returns true if the node reports requests of a container that differ from the spec.
fn is_resized(spec: &PodSpec, status: &PodStatus) -> bool {
    let lists = [&status.container_statuses, &status.init_container_statuses];
    let mut statuses = lists.into_iter().flat_map(|list| list.iter().flatten());
    let inits = spec.init_containers.iter().flatten();
    let containers = || spec.containers.iter().chain(inits.clone());
    statuses.any(|status| {
        let mut containers = containers();
        let container = containers.find(|container| container.name == status.name);
        let requested = container.and_then(|container| container.resources.as_ref());
        let requested = requested.and_then(|resources| resources.requests.as_ref());
        let actual = status.resources.as_ref();
        let actual = actual.and_then(|resources| resources.requests.as_ref());
        let differs = |amounts: Option<_>| amounts.is_some() && amounts != requested;
        differs(status.allocated_resources.as_ref()) || differs(actual)
    })
}

fn total(spec: &PodSpec, own: impl Fn(&Container) -> Amounts) -> Amounts {
    let mut steady = Amounts::default();
    spec.containers
        .iter()
        .for_each(|container| steady.add(&own(container)));
    let mut sidecars = Amounts::default();
    let mut starting = Amounts::default();
    for container in spec.init_containers.iter().flatten() {
        let mut now = own(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&now);
            starting.raise(&sidecars);
        } else {
            now.add(&sidecars);
            starting.raise(&now);
        }
    }
    steady.add(&sidecars);
    steady.raise(&starting);
    steady.0.extend(requests(spec.resources.as_ref()).0);
    steady.add(&Amounts::of(spec.overhead.as_ref()));
    steady
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    /// Returns the CPU that a pod occupies. Its container requests 2 cores.
    fn occupied(status: Value) -> i128 {
        let spec = json!({"containers": [container("2")]});
        let spec = serde_json::from_value(spec).unwrap();
        let status: PodStatus = serde_json::from_value(status).unwrap();
        occupied_by(&spec, Some(&status)).get("cpu")
    }

    #[test]
    fn a_pod_that_is_resized_occupies_the_most() {
        let status = |allocated: &str, actual: &str| {
            json!({"containerStatuses": [{
                "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual}},
            }]})
        };
        assert_eq!(occupied(json!({})), 2000);
        assert_eq!(occupied(status("2", "2")), 2000);
        // The container becomes smaller, and larger.
        assert_eq!(occupied(status("2", "3")), 3000);
        assert_eq!(occupied(status("1", "1")), 2000);
        let mut infeasible = status("1", "500m");
        infeasible["conditions"] =
            json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
        assert_eq!(occupied(infeasible), 1000);
    }

    fn cpu(spec: Value) -> i128 {
        of_pod(&serde_json::from_value(spec).unwrap()).get("cpu")
    }

    fn container(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn the_requests_of_a_pod_are_its_peak() {
        let sidecar = |cpu: &str| {
            let mut sidecar = container(cpu);
            sidecar["restartPolicy"] = "Always".into();
            sidecar
        };
        let table = [
            (
                json!({"containers": [container("100m"), container("1")]}),
                1100,
            ),
            (
                json!({"containers": [container("100m")], "initContainers": [container("2"), container("1")]}),
                2000,
            ),
            (
                json!({"containers": [container("100m")], "initContainers": [sidecar("500m"), container("1")]}),
                1500,
            ),
            (
                json!({"containers": [container("2")], "initContainers": [sidecar("500m"), container("1")]}),
                2500,
            ),
            (
                json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}),
                1250,
            ),
            (
                json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}),
                3000,
            ),
            (
                json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}),
                4000,
            ),
            (json!({"containers": [{"name": "c"}]}), 0),
            (json!({"containers": [container("what")]}), 0),
        ];
        for (spec, millicores) in table {
            assert_eq!(cpu(spec.clone()), millicores, "{spec}");
        }
    }

    #[test]
    fn huge_amounts_do_not_overflow_and_can_be_subtracted() {
        for huge in ["1e308", "1000000000000000000E", "8Ei", "-1e308"] {
            let spec = json!({"containers": vec![container(huge); 100],
                "initContainers": [container(huge)], "overhead": {"cpu": huge}});
            let amounts = of_pod(&serde_json::from_value(spec).unwrap());
            let mut used = Amounts::default();
            for _ in 0..1000 {
                used.add(&amounts);
            }
            for _ in 0..1000 {
                used.subtract(&amounts);
            }
            assert_eq!(used.get("cpu"), 0, "{huge}");
        }
    }

    #[test]
    fn tenths_are_summed_exactly() {
        let containers: Vec<Value> = (0..10).map(|_| container("0.1")).collect();
        assert_eq!(cpu(json!({ "containers": containers })), 1000);
    }
}
