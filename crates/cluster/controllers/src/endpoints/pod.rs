//! The fields of a pod that the controllers read.

use std::{collections::BTreeMap, net::IpAddr};

use jiff::Timestamp;
use longshore_client::{Error, Item, kinds::Pod};
use serde::Deserialize;

use super::service::{Family, ServicePort, TargetPort};

/// A port that a container declares by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedPort {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) port: i32,
}

/// The fields of a pod that the controllers read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PodFacts {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: BTreeMap<String, String>,
    /// The addresses of the pod, of all families.
    pub(super) addresses: Vec<IpAddr>,
    /// The node of the pod; empty if the pod is not scheduled.
    pub(super) node: String,
    pub(super) hostname: String,
    pub(super) subdomain: String,
    pub(super) ready: bool,
    /// The time at which the condition Ready changed.
    pub(super) ready_changed: Option<Timestamp>,
    /// True if the pod is being deleted.
    pub(super) terminating: bool,
    /// True if the pod has succeeded or failed.
    pub(super) ended: bool,
    /// The named ports of containers and sidecars, in this order.
    pub(super) ports: Vec<NamedPort>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    spec: Spec,
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
    hostname: Option<String>,
    subdomain: Option<String>,
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    restart_policy: Option<String>,
    ports: Option<Vec<Port>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Port {
    name: Option<String>,
    protocol: Option<String>,
    container_port: i32,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    #[serde(rename = "podIPs")]
    pod_ips: Option<Vec<Address>>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Address {
    ip: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    r#type: String,
    status: String,
    last_transition_time: Option<Timestamp>,
}

impl PodFacts {
    /// Reads a pod.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Pod>) -> Result<Self, Error> {
        let Raw { spec, status } = item.typed()?;
        let meta = item.meta();
        let addresses: Vec<String> = match status.pod_ips {
            Some(list) if !list.is_empty() => list.into_iter().map(|one| one.ip).collect(),
            _ => status.pod_ip.into_iter().collect(),
        };
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.iter().find(|one| one.r#type == "Ready");
        let sidecars = spec.init_containers.into_iter().flatten();
        let sidecars = sidecars.filter(|one| one.restart_policy.as_deref() == Some("Always"));
        let containers = spec.containers.into_iter().flatten().chain(sidecars);
        let ports = containers.flat_map(|one| one.ports.unwrap_or_default());
        let ports = ports.filter_map(|port| {
            Some(NamedPort {
                name: port.name.filter(|name| !name.is_empty())?,
                protocol: port.protocol.unwrap_or_else(|| "TCP".to_owned()),
                port: port.container_port,
            })
        });
        Ok(Self {
            namespace: item.namespace().unwrap_or_default().to_owned(),
            name: item.name().to_owned(),
            uid: item.uid().to_owned(),
            labels: meta.labels.clone(),
            addresses: addresses.iter().filter_map(|ip| ip.parse().ok()).collect(),
            node: spec.node_name.unwrap_or_default(),
            hostname: spec.hostname.unwrap_or_default(),
            subdomain: spec.subdomain.unwrap_or_default(),
            ready: ready.is_some_and(|one| one.status == "True"),
            ready_changed: ready.and_then(|one| one.last_transition_time),
            terminating: meta.deletion_timestamp.is_some(),
            ended: matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")),
            ports: ports.collect(),
        })
    }

    /// Returns true if the pod can be an endpoint: it has an address and has not ended.
    pub(super) fn is_published(&self) -> bool {
        !self.ended && !self.addresses.is_empty()
    }

    /// Returns the addresses of the pod in a family.
    pub(super) fn addresses_of(&self, family: Family) -> impl Iterator<Item = String> {
        let addresses = self.addresses.iter();
        let addresses = addresses.filter(move |ip| ip.is_ipv4() == (family == Family::V4));
        addresses.map(IpAddr::to_string)
    }

    /// Returns the number of the pod's port to which a port of a Service leads.
    pub(super) fn port_of(&self, port: &ServicePort) -> Option<i32> {
        match &port.target_port {
            TargetPort::Number(number) => Some(*number),
            TargetPort::Name(name) => {
                let mut ports = self.ports.iter();
                let found = ports.find(|own| own.name == *name && own.protocol == port.protocol);
                found.map(|own| own.port)
            }
        }
    }
}
