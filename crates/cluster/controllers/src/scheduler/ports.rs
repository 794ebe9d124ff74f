//! The ports of nodes that pods request (`hostPort`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;
use longshore_model::HostPort;

/// Returns the ports that a pod uses while it runs: the ports of its containers and sidecars.
pub(crate) fn of_pod(spec: &PodSpec) -> Vec<HostPort> {
    let inits = spec.init_containers.iter().flatten();
    let sidecars = inits.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let containers = sidecars.chain(&spec.containers);
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    ports
        .filter_map(|port| {
            let number = port.host_port.unwrap_or_default();
            HostPort::new(port.host_ip.as_deref(), port.protocol.as_deref(), number)
        })
        .collect()
}

/// The ports of a node in use, with the number of pods that use each. Pods that were not scheduled
/// can use the same port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UsedPorts(BTreeMap<HostPort, usize>);

impl UsedPorts {
    pub(super) fn add(&mut self, ports: &[HostPort]) {
        for port in ports {
            let count = self.0.entry(port.clone()).or_insert(0);
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn remove(&mut self, ports: &[HostPort]) {
        for port in ports {
            if let Some(count) = self.0.get_mut(port) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.0.remove(port);
                }
            }
        }
    }

    /// Returns true if another pod uses one of the ports.
    pub(super) fn conflict_with(&self, ports: &[HostPort]) -> bool {
        let mut used = self.0.keys();
        !ports.is_empty() && used.any(|used| ports.iter().any(|port| port.conflicts_with(used)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn ports(spec: Value) -> Vec<HostPort> {
        of_pod(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn ports_are_counted() {
        let one = ports(json!({"containers": [{"name": "c", "ports": [
            {"containerPort": 1, "hostPort": 80}, {"containerPort": 2}]}]}));
        assert_eq!(one.len(), 1);
        let mut used = UsedPorts::default();
        used.add(&one);
        used.add(&one);
        used.remove(&one);
        assert!(used.conflict_with(&one));
        assert!(!used.conflict_with(&[]));
        used.remove(&one);
        assert_eq!(used, UsedPorts::default());
        used.remove(&one);
        assert!(!used.conflict_with(&one));
    }

    #[test]
    fn sidecars_request_ports_and_other_init_containers_do_not() {
        let init = |policy: Value| {
            json!({"containers": [{"name": "c"}], "initContainers": [
                {"name": "i", "restartPolicy": policy,
                 "ports": [{"containerPort": 1, "hostPort": 80}]}]})
        };
        assert_eq!(ports(init(Value::Null)), []);
        assert_eq!(ports(init("Always".into())).len(), 1);
    }
}
