//! The resource usage of pods, as the API server reports it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use longshore_model::quantity::Amounts;
use serde::Deserialize;

/// The usage of a resource by a pod or by one of its containers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    pub(super) at: Timestamp,
    /// The duration of the measurement.
    pub(super) window: SignedDuration,
    /// The usage in thousandths.
    pub(super) value: i64,
}

/// The usage of a resource by the name of the pod.
pub(super) type Usage = BTreeMap<String, Measured>;

/// A `PodMetricsList` of `metrics.k8s.io`.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct PodMetricsList {
    #[serde(default)]
    items: Vec<PodMetrics>,
}

#[derive(Debug, Clone, Deserialize)]
struct PodMetrics {
    metadata: Metadata,
    timestamp: Timestamp,
    window: String,
    #[serde(default)]
    containers: Vec<ContainerMetrics>,
}

#[derive(Debug, Clone, Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Clone, Deserialize)]
struct ContainerMetrics {
    name: String,
    #[serde(default)]
    usage: Amounts,
}

impl PodMetrics {
    fn value(&self, resource: &str, container: Option<&str>) -> Option<i64> {
        let value = |one: &ContainerMetrics| {
            let amount = one.usage.get(resource)?;
            Some(amount.thousandths())
        };
        if let Some(container) = container {
            let mut containers = self.containers.iter();
            return value(containers.find(|one| one.name == container)?);
        }
        // A pod counts only if all its containers were measured.
        let mut sum = None;
        for one in &self.containers {
            sum = Some(i64::saturating_add(sum.unwrap_or(0), value(one)?));
        }
        sum
    }
}

impl PodMetricsList {
    /// Returns the usage of a resource by each pod, or by the pods' container of this name.
    ///
    /// # Errors
    /// Returns Kubernetes' message if no pod was measured.
    pub(super) fn usage(&self, resource: &str, container: Option<&str>) -> Result<Usage, String> {
        if self.items.is_empty() {
            return Err("no metrics returned from resource metrics API".to_owned());
        }
        let measured = self.items.iter().filter_map(|pod| {
            let measured = Measured {
                at: pod.timestamp,
                window: pod.window.parse().unwrap_or_default(),
                value: pod.value(resource, container)?,
            };
            Some((pod.metadata.name.clone(), measured))
        });
        Ok(measured.collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_without_the_usage_of_a_container_is_missing() {
        let pod = |name: &str, containers| {
            json!({"metadata": {"name": name}, "timestamp": "2026-01-02T03:04:05Z",
                "window": "1m1.500s", "containers": containers})
        };
        let one = |name: &str, usage| json!({"name": name, "usage": usage});
        let list = json!({"items": [
            pod("a", json!([one("x", json!({"cpu": "250000001n", "memory": "2Ki"})),
                            one("y", json!({"cpu": "1"}))])),
            pod("b", json!([one("x", json!({"cpu": "1"})), one("y", json!({}))])),
            pod("c", json!([])),
        ]});
        let list: PodMetricsList = serde_json::from_value(list).unwrap();
        let values = |resource, container| {
            let usage = list.usage(resource, container).unwrap();
            let values = usage.into_iter();
            values
                .map(|(name, one)| (name, one.value))
                .collect::<Vec<_>>()
        };
        assert_eq!(values("cpu", None), [("a".to_owned(), 1251)]);
        assert_eq!(values("memory", Some("x")), [("a".to_owned(), 2_048_000)]);
        assert_eq!(values("cpu", Some("x")).len(), 2);
        let usage = list.usage("cpu", None).unwrap();
        assert_eq!(usage["a"].window, SignedDuration::from_millis(61_500));
        let none = PodMetricsList::default().usage("cpu", None);
        assert!(none.unwrap_err().starts_with("no metrics returned"));
    }
}
