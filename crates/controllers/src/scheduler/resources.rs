//! What pods ask for and nodes can give.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as Text,
};
use longshore_model::Quantity;

/// Amounts by resource name, in thousandths: `cpu` in millicores, `memory` in
/// thousandths of a byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Amounts(pub(crate) BTreeMap<String, i128>);

impl Amounts {
    /// Of a map of quantities. One that cannot be read counts as nothing.
    pub(crate) fn of(map: Option<&BTreeMap<String, Text>>) -> Self {
        let amount = |text: &Text| match text.0.parse::<Quantity>() {
            Ok(quantity) => thousandths(quantity.value()),
            Err(error) => {
                tracing::warn!(%error, "a quantity cannot be read");
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

    /// The amount of one resource; 0 when it is not named.
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

    /// Takes amounts away.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_insert(0);
            *own = own.saturating_sub(*amount);
        }
    }

    /// Raises each amount to at least the other's.
    fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_insert(0);
            *own = (*own).max(*amount);
        }
    }
}

/// The largest amount, in thousandths, that is told from larger ones. Sums of
/// so many containers and pods as there can be stay far below the largest i128,
/// so that what was added can be taken away again.
const LARGEST: i128 = 1 << 80;

/// A value in thousandths, rounded up as Kubernetes does; but what is a whole
/// number save for the error of binary fractions stays it.
fn thousandths(value: f64) -> i128 {
    let exact = value * 1000.0;
    let near = exact.round();
    let whole = if (exact - near).abs() <= exact.abs() * 1e-12 {
        near
    } else {
        exact.ceil()
    };
    #[allow(clippy::cast_possible_truncation, reason = "saturates, as wanted")]
    {
        (whole as i128).clamp(-LARGEST, LARGEST)
    }
}

/// Requests; a limit stands in for a request that is not given.
fn asked(resources: Option<&ResourceRequirements>) -> Amounts {
    let Some(resources) = resources else {
        return Amounts::default();
    };
    let mut amounts = Amounts::of(resources.limits.as_ref());
    amounts.0.extend(Amounts::of(resources.requests.as_ref()).0);
    amounts
}

/// What a pod asks for: its containers and sidecars together, or the largest
/// init container if that is more; plus the overhead. Requests of the pod as a
/// whole come first.
pub(crate) fn of_pod(spec: &PodSpec) -> Amounts {
    let own = |container: &Container| asked(container.resources.as_ref());
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
    steady.0.extend(asked(spec.resources.as_ref()).0);
    steady.add(&Amounts::of(spec.overhead.as_ref()));
    steady
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn cpu(spec: Value) -> i128 {
        of_pod(&serde_json::from_value(spec).unwrap()).get("cpu")
    }

    fn container(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn a_pod_asks_for_the_most_it_ever_needs() {
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
    fn amounts_beyond_all_bounds_neither_overflow_nor_stay() {
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
    fn tenths_add_up_exactly() {
        let containers: Vec<Value> = (0..10).map(|_| container("0.1")).collect();
        assert_eq!(cpu(json!({ "containers": containers })), 1000);
    }
}
