//! The fields of a pod that the controller reads.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use longshore_client::{Error, Item};

use crate::scheduler::{Amounts, of_pod};

/// The requests of a container.
#[derive(Debug, Clone, PartialEq)]
struct Requests {
    container: String,
    amounts: Amounts,
}

/// The fields of a pod that the controller reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodFacts {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    /// True if the pod is being deleted.
    pub(super) deleting: bool,
    pub(super) phase: String,
    pub(super) started: Option<Timestamp>,
    /// True if the condition Ready is False, and the time of the condition's last transition.
    pub(super) unready: Option<(bool, Timestamp)>,
    /// The requests of the containers and sidecars.
    requests: Vec<Requests>,
    /// The requests of the whole pod, if the pod has any.
    pod_level: Option<Amounts>,
}

fn of_container(container: &Container) -> Requests {
    let resources = container.resources.as_ref();
    Requests {
        container: container.name.clone(),
        amounts: Amounts::of(resources.and_then(|resources| resources.requests.as_ref())),
    }
}

fn has_pod_level_requests(spec: &PodSpec) -> bool {
    let resources = spec.resources.as_ref();
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let mut names = requests.into_iter().flatten().map(|(name, _)| &**name);
    names.any(|name| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-"))
}

impl PodFacts {
    /// Reads a pod.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Pod>) -> Result<Self, Error> {
        Ok(Self::read(item.object()?))
    }

    /// Reads the fields.
    pub(super) fn read(pod: Pod) -> Self {
        let (spec, status) = (pod.spec.unwrap_or_default(), pod.status.unwrap_or_default());
        let mut conditions = status.conditions.iter().flatten();
        let ready = conditions.find(|one| one.type_ == "Ready");
        let unready = ready.map(|one| {
            let since = one.last_transition_time.as_ref();
            let since = since.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
            (one.status == "False", since)
        });
        let sidecars = spec.init_containers.iter().flatten();
        let sidecars = sidecars.filter(|one| one.restart_policy.as_deref() == Some("Always"));
        let containers = spec.containers.iter().chain(sidecars);
        Self {
            name: pod.metadata.name.unwrap_or_default(),
            labels: pod.metadata.labels.unwrap_or_default(),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            phase: status.phase.unwrap_or_default(),
            started: status.start_time.map(|time| time.0),
            unready,
            requests: containers.map(of_container).collect(),
            pod_level: has_pod_level_requests(&spec).then(|| of_pod(&spec)),
        }
    }

    /// Returns the request of the pod or of one of its containers for a resource, in thousandths.
    ///
    /// # Errors
    /// Returns Kubernetes' message if a container or the pod lacks the request.
    pub(super) fn request(&self, resource: &str, container: Option<&str>) -> Result<i64, String> {
        let limited = |amount: i128| i64::try_from(amount).unwrap_or(i64::MAX);
        let name = &self.name;
        if let (Some(amounts), None) = (&self.pod_level, container) {
            let amount = amounts.0.get(resource).copied();
            let missing = || format!("missing pod-level request for {resource} in Pod {name}");
            return amount.map(limited).ok_or_else(missing);
        }
        let mut sum = 0_i64;
        for one in &self.requests {
            if container.is_some_and(|container| container != one.container) {
                continue;
            }
            let missing = || {
                let container = &one.container;
                format!("missing request for {resource} in container {container} of Pod {name}")
            };
            let amount = one.amounts.0.get(resource).ok_or_else(missing)?;
            sum = sum.saturating_add(limited(*amount));
            if container.is_some() {
                return Ok(sum);
            }
        }
        match container {
            Some(container) => Err(format!("container {container} not found in Pod {name}")),
            None => Ok(sum),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn request(spec: Value, container: Option<&str>) -> Result<i64, String> {
        let pod = json!({"metadata": {"name": "p"}, "spec": spec});
        PodFacts::read(serde_json::from_value(pod).unwrap()).request("cpu", container)
    }

    #[test]
    fn requests_of_pods_and_containers() {
        let one =
            |name: &str, cpu: &str| json!({"name": name, "resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = one("s", "50m");
        sidecar["restartPolicy"] = "Always".into();
        let spec = json!({"containers": [one("a", "1"), one("b", "200m")],
            "initContainers": [sidecar, one("i", "9")]});
        assert_eq!(request(spec.clone(), None), Ok(1250));
        assert_eq!(request(spec.clone(), Some("b")), Ok(200));
        let missing = "container c not found in Pod p".to_owned();
        assert_eq!(request(spec.clone(), Some("c")), Err(missing));

        let mut pod_level = spec;
        pod_level["resources"] = json!({"requests": {"cpu": "3"}});
        assert_eq!(request(pod_level.clone(), None), Ok(3000));
        assert_eq!(request(pod_level, Some("a")), Ok(1000));

        let without = json!({"containers": [one("a", "1"), {"name": "b"}]});
        let missing = "missing request for cpu in container b of Pod p".to_owned();
        assert_eq!(request(without, None), Err(missing));
    }
}
