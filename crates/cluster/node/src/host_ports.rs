//! The ports of the node that pods request (`hostPort`): the pods that may use them, and their
//! destinations.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use k8s_openapi::api::core::v1::{Container, Pod};
use longshore_model::{HostPort, network::NODE_ADDRESS};
use longshore_services::ForwardedPort;
use parking_lot::Mutex;

/// The rejection of a pod: a reason and a message in the format of the kubelet.
pub(crate) type Rejection = (&'static str, String);

/// The ports of the node that its pods use.
#[derive(Debug, Default)]
pub(crate) struct AdmittedPorts(Mutex<HashMap<String, Vec<HostPort>>>);

impl AdmittedPorts {
    /// Reserves the ports that a pod requests.
    ///
    /// # Errors
    /// Another pod has one of the ports.
    pub(crate) fn admit(&self, uid: &str, pod: &Pod) -> Result<(), Rejection> {
        let wanted = requested(pod);
        if wanted.is_empty() {
            return Ok(());
        }
        let mut admitted = self.0.lock();
        let mut others = admitted
            .iter()
            .filter(|(other, _)| *other != uid)
            .flat_map(|(_, ports)| ports);
        if others.any(|taken| wanted.iter().any(|port| port.conflicts_with(taken))) {
            let message = format!("Predicate NodePorts failed: {}", HostPort::CONFLICT);
            return Err(("NodePorts", message));
        }
        admitted.insert(uid.to_owned(), wanted);
        Ok(())
    }

    /// Frees the ports of a pod.
    pub(crate) fn release(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

/// Returns the ports that a pod uses while it runs: the ports of its containers and sidecars.
fn requested(pod: &Pod) -> Vec<HostPort> {
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };
    let inits = spec.init_containers.iter().flatten();
    let sidecars = inits.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let containers = sidecars.chain(&spec.containers);
    containers
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.unwrap_or_default();
            HostPort::new(port.host_ip.as_deref(), port.protocol.as_deref(), number)
        })
        .collect()
}

/// Returns the ports that the node forwards to a pod with this address. With `hostNetwork`, the
/// containers listen at the ports themselves. `is_separate` is true if the containers have their
/// own ports. Otherwise, a server that listens on all addresses already has the port. `node` is the
/// address of the node.
pub(crate) fn forwarded(
    pod: &Pod,
    address: Ipv4Addr,
    node: Ipv4Addr,
    is_separate: bool,
) -> Vec<ForwardedPort> {
    let spec = pod.spec.as_ref();
    let Some(spec) = spec.filter(|spec| spec.host_network != Some(true)) else {
        return Vec::new();
    };
    let ports = |container: &Container| container.ports.clone().unwrap_or_default();
    let ports = spec.containers.iter().flat_map(ports);
    ports
        .filter(|port| is_separate || port.host_port != Some(port.container_port))
        .flat_map(|port| {
            let host = port.host_port.and_then(|host| u16::try_from(host).ok());
            let host = host.filter(|host| *host > 0);
            let own = u16::try_from(port.container_port).ok();
            let ips = listened(port.host_ip.as_deref(), node).into_iter();
            ips.filter_map(move |ip| {
                let at = SocketAddr::new(ip, host?);
                let to = SocketAddr::new(IpAddr::V4(address), own?);
                ForwardedPort::new(port.protocol.as_deref(), at, to)
            })
        })
        .collect()
}

/// Returns the addresses at which the node listens for a `hostIP`. All addresses of the node are
/// addresses of this machine alone, so programs on other machines cannot reach the pods. The first
/// of several nodes has the ports of `localhost`.
fn listened(host_ip: Option<&str>, node: Ipv4Addr) -> Vec<IpAddr> {
    let ip = host_ip.filter(|text| !text.is_empty());
    match ip.map_or(Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), str::parse) {
        Ok(ip) if ip.is_unspecified() => {
            let localhost = (node == NODE_ADDRESS).then_some(Ipv4Addr::LOCALHOST);
            localhost
                .into_iter()
                .chain([node])
                .map(IpAddr::V4)
                .collect()
        }
        Ok(ip) => vec![ip],
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_model::network::node_address;
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap()
    }

    fn with_ports(ports: Value) -> Pod {
        pod(json!({"containers": [{"name": "c", "ports": ports}]}))
    }

    #[test]
    fn a_port_is_given_to_one_pod_until_it_is_released() {
        let admitted = AdmittedPorts::default();
        let local =
            with_ports(json!([{"containerPort": 1, "hostPort": 80, "hostIP": "127.0.0.1"}]));
        let all = with_ports(json!([{"containerPort": 1, "hostPort": 80}]));
        let udp = with_ports(json!([{"containerPort": 1, "hostPort": 80, "protocol": "UDP"}]));
        let none = with_ports(json!([{"containerPort": 80}]));
        admitted.admit("local", &local).unwrap();
        admitted.admit("local", &local).unwrap();
        admitted.admit("udp", &udp).unwrap();
        admitted.admit("none", &none).unwrap();
        let (reason, message) = admitted.admit("all", &all).unwrap_err();
        assert_eq!(reason, "NodePorts");
        assert_eq!(
            message,
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
        );
        admitted.release("local");
        admitted.admit("all", &all).unwrap();
    }

    #[test]
    fn sidecars_request_ports_and_other_init_containers_do_not() {
        let ports = json!([{"containerPort": 1, "hostPort": 80}]);
        let init = |policy: Value| {
            pod(json!({
                "initContainers": [{"name": "i", "restartPolicy": policy, "ports": ports}],
                "containers": [{"name": "c"}],
            }))
        };
        assert_eq!(requested(&init(Value::Null)).len(), 0);
        assert_eq!(requested(&init("Always".into())).len(), 1);
    }

    #[test]
    fn ports_are_forwarded_from_the_addresses_of_the_node_or_the_requested_one() {
        let address = Ipv4Addr::new(127, 16, 0, 9);
        let ports = json!([
            {"containerPort": 8080, "hostPort": 80},
            {"containerPort": 8080, "hostPort": 81, "hostIP": "0.0.0.0"},
            {"containerPort": 8080, "hostPort": 82, "hostIP": "127.0.0.2", "protocol": "UDP"},
            {"containerPort": 83, "hostPort": 83, "hostIP": "::1"},
            {"containerPort": 84, "hostPort": 84, "protocol": "SCTP"},
            {"containerPort": 85},
            {"containerPort": 86, "hostPort": 0},
            {"containerPort": 87, "hostPort": 87, "hostIP": "host"},
        ]);
        let expected: Vec<ForwardedPort> = [
            ("TCP", "127.0.0.1:80", 8080),
            ("TCP", "127.7.0.1:80", 8080),
            ("TCP", "127.0.0.1:81", 8080),
            ("TCP", "127.7.0.1:81", 8080),
            ("UDP", "127.0.0.2:82", 8080),
            ("TCP", "[::1]:83", 83),
        ]
        .map(|(protocol, at, port)| {
            let to = SocketAddr::from((address, port));
            ForwardedPort::new(Some(protocol), at.parse().unwrap(), to).unwrap()
        })
        .to_vec();
        let spec = |network: bool| json!({"hostNetwork": network, "containers": [{"name": "c", "ports": ports}]});
        let at =
            |network, node, is_separate| forwarded(&pod(spec(network)), address, node, is_separate);
        assert_eq!(at(false, NODE_ADDRESS, true), expected);
        assert_eq!(at(false, NODE_ADDRESS, false), expected[..5]);
        assert_eq!(at(true, NODE_ADDRESS, true), []);
        let second: Vec<ForwardedPort> = at(false, node_address(1), true);
        let first = ForwardedPort::new(
            Some("TCP"),
            "127.7.0.2:80".parse().unwrap(),
            SocketAddr::from((address, 8080)),
        );
        assert_eq!((second.len(), second.first().copied()), (4, first));
    }
}
