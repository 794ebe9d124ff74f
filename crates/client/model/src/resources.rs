//! The requests and limits of containers, and their sums for a pod.

use serde::Deserialize;

use crate::{
    meta::null_as_default,
    quantity::{Amount, Amounts},
};

/// The requests and limits of a container or a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Requirements {
    /// The reserved amounts.
    #[serde(deserialize_with = "null_as_default")]
    pub requests: Amounts,
    /// The maximum amounts.
    #[serde(deserialize_with = "null_as_default")]
    pub limits: Amounts,
}

/// A container of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// The name of the container.
    pub name: String,
    /// The requests and limits of the container.
    #[serde(deserialize_with = "null_as_default")]
    pub resources: Requirements,
    restart_policy: Option<String>,
}

/// The spec of a pod, as far as it determines its resources.
///
/// ```
/// use longshore_model::resources::PodResources;
/// let spec: PodResources = serde_json::from_value(serde_json::json!({
///     "containers": [
///         {"name": "a", "resources": {"requests": {"cpu": "100m"}}},
///         {"name": "b", "resources": {"requests": {"cpu": "200m"}}},
///     ],
///     "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1"}}}],
/// }))?;
/// assert_eq!(spec.requests()["cpu"].to_string(), "1");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodResources {
    /// The containers.
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<Container>,
    /// The init containers, including sidecars.
    #[serde(deserialize_with = "null_as_default")]
    pub init_containers: Vec<Container>,
    /// The requests and limits of the whole pod.
    pub resources: Option<Requirements>,
    /// The resources that the pod needs in addition to its containers.
    #[serde(deserialize_with = "null_as_default")]
    pub overhead: Amounts,
}

/// Adds amounts to others.
pub(crate) fn add(to: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        let sum = to.get(name).copied().unwrap_or(Amount::ZERO) + *amount;
        to.insert(name.clone(), sum);
    }
}

/// Raises amounts to the larger of two.
pub(crate) fn raise(to: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        let known = to.entry(name.clone()).or_insert(*amount);
        *known = (*known).max(*amount);
    }
}

impl PodResources {
    /// All containers, and then the init containers.
    pub fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().chain(&self.init_containers)
    }

    /// The requests of the pod, without its overhead.
    #[must_use]
    pub fn requests(&self) -> Amounts {
        self.total(|resources| &resources.requests)
    }

    /// The limits of the pod, without its overhead.
    #[must_use]
    pub fn limits(&self) -> Amounts {
        self.total(|resources| &resources.limits)
    }

    /// The requests of the pod and its overhead.
    #[must_use]
    pub fn requests_with_overhead(&self) -> Amounts {
        let mut total = self.requests();
        add(&mut total, &self.overhead);
        total
    }

    /// The limits of the pod and its overhead. Resources without a limit stay unlimited.
    #[must_use]
    pub fn limits_with_overhead(&self) -> Amounts {
        let mut total = self.limits();
        for (name, amount) in &mut total {
            if let Some(overhead) = self.overhead.get(name)
                && !amount.is_zero()
            {
                *amount = *amount + *overhead;
            }
        }
        total
    }

    /// The sum of the containers and sidecars, or the most that the init containers need,
    /// which run one after the other. Values of the pod itself take precedence.
    fn total(&self, of: impl Fn(&Requirements) -> &Amounts) -> Amounts {
        let mut total = Amounts::new();
        for container in &self.containers {
            add(&mut total, of(&container.resources));
        }
        let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
        for container in &self.init_containers {
            let own = of(&container.resources);
            if container.restart_policy.as_deref() == Some("Always") {
                add(&mut total, own);
                add(&mut sidecars, own);
                raise(&mut most, &sidecars);
            } else {
                let mut together = own.clone();
                add(&mut together, &sidecars);
                raise(&mut most, &together);
            }
        }
        raise(&mut total, &most);
        let own = self.resources.as_ref().map(of);
        for (name, amount) in own.into_iter().flatten() {
            if is_pod_level(name) {
                total.insert(name.clone(), *amount);
            }
        }
        total
    }

    /// Returns true if the pod itself has requests or limits.
    #[must_use]
    pub fn has_pod_level(&self) -> bool {
        let own = self.resources.iter();
        own.flat_map(|own| own.requests.keys().chain(own.limits.keys()))
            .any(|name| is_pod_level(name))
    }

    /// Returns true if no container requests or limits CPU or memory: the QoS class BestEffort.
    #[must_use]
    pub fn is_best_effort(&self) -> bool {
        let needs = |resources: &Requirements| {
            let mut all = resources.requests.iter().chain(&resources.limits);
            all.any(|(name, amount)| matches!(&**name, "cpu" | "memory") && !amount.is_zero())
        };
        match &self.resources {
            Some(own) if self.has_pod_level() => !needs(own),
            _ => !self.all_containers().any(|one| needs(&one.resources)),
        }
    }
}

/// Returns true if a pod can have its own requests and limits of a resource.
fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pod(spec: serde_json::Value) -> PodResources {
        serde_json::from_value(spec).unwrap()
    }

    fn container(cpu: &str) -> serde_json::Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}})
    }

    #[test]
    fn sidecars_run_beside_later_init_containers_and_the_containers() {
        let mut sidecar = container("1");
        sidecar["restartPolicy"] = json!("Always");
        let mut spec = json!({
            "containers": [container("2")],
            "initContainers": [container("4"), sidecar, container("3")],
        });
        // The second init container needs 3 in addition to the sidecar: more than 2 + 1.
        assert_eq!(pod(spec.clone()).requests()["cpu"].to_string(), "4");
        spec["initContainers"][2] = container("5");
        assert_eq!(pod(spec.clone()).requests()["cpu"].to_string(), "6");
        spec["containers"][0] = container("9");
        assert_eq!(pod(spec).limits()["cpu"].to_string(), "10");
    }

    #[test]
    fn the_overhead_counts_and_pod_level_values_take_precedence() {
        let mut spec =
            json!({"containers": [container("2")], "overhead": {"cpu": "1", "memory": "1Mi"}});
        let found = pod(spec.clone());
        assert_eq!(found.requests_with_overhead()["cpu"].to_string(), "3");
        assert_eq!(found.requests_with_overhead()["memory"].to_string(), "1Mi");
        assert_eq!(found.limits_with_overhead()["cpu"].to_string(), "3");
        assert!(!found.limits_with_overhead().contains_key("memory"));
        spec["resources"] = json!({"requests": {"cpu": "7", "x/y": "1"}});
        let found = pod(spec);
        assert_eq!(found.requests()["cpu"].to_string(), "7");
        assert!(found.has_pod_level() && !found.requests().contains_key("x/y"));
    }

    #[test]
    fn best_effort() {
        let one = |resources| pod(json!({"containers": [{"name": "c", "resources": resources}]}));
        assert!(one(json!(null)).is_best_effort());
        assert!(one(json!({"requests": {"cpu": "0", "x/y": "1"}})).is_best_effort());
        assert!(!one(json!({"limits": {"memory": "1"}})).is_best_effort());
    }
}
