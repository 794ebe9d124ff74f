//! The subsets of an Endpoints object. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};

use super::{
    desired::{HEADLESS, hostname, reference},
    pod::PodFacts,
    service::{Family, Service},
};

/// The label with the controller that manages an Endpoints object.
pub(super) const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// The value of the label [`MANAGED_BY`].
pub(super) const MANAGER: &str = "endpoint-controller";
/// The annotation of an object without some of the addresses.
pub(super) const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// The maximum number of addresses, as in Kubernetes.
pub(super) const MAX_ADDRESSES: usize = 1000;

/// A port in the order of subsets; `None` for Services without ports.
type Port = Option<(Option<String>, i32, Option<String>, Option<String>)>;
/// The identity of an address: the address and the UID of the pod.
type AddressKey = (String, Option<String>);

fn address_key(address: &EndpointAddress) -> AddressKey {
    let uid = address.target_ref.as_ref().and_then(|pod| pod.uid.clone());
    (address.ip.clone(), uid)
}

/// The subsets of a Service's Endpoints, in a canonical order.
pub(super) fn desired(service: &Service, pods: &[Arc<PodFacts>]) -> Vec<EndpointSubset> {
    let family = service.families.first().copied().unwrap_or(Family::V4);
    let mut subsets = Vec::new();
    for pod in pods.iter().filter(|pod| pod.is_published()) {
        if pod.terminating && !service.publish_not_ready {
            continue;
        }
        let Some(ip) = pod.addresses_of(family).next() else {
            continue;
        };
        let address = EndpointAddress {
            ip,
            hostname: hostname(service, pod),
            node_name: Some(pod.node.clone()),
            target_ref: Some(reference(pod)),
        };
        let ports = service.ports.iter().filter_map(|port| {
            Some(EndpointPort {
                name: Some(port.name.clone()).filter(|name| !name.is_empty()),
                port: pod.port_of(port)?,
                protocol: Some(port.protocol.clone()),
                app_protocol: port.app_protocol.clone(),
            })
        });
        let ports: Vec<EndpointPort> = ports.collect();
        // A headless Service may have no ports.
        if ports.is_empty() && !(service.ports.is_empty() && service.headless) {
            continue;
        }
        let (addresses, not_ready) = match service.publish_not_ready || pod.ready {
            true => (Some(vec![address]), None),
            false => (None, Some(vec![address])),
        };
        subsets.push(EndpointSubset {
            addresses,
            not_ready_addresses: not_ready,
            ports: Some(ports),
        });
    }
    repacked(&subsets)
}

/// Combines subsets: each port occurs once, and ports with the same addresses are in one
/// subset.
pub(super) fn repacked(subsets: &[EndpointSubset]) -> Vec<EndpointSubset> {
    let mut addresses: BTreeMap<AddressKey, EndpointAddress> = BTreeMap::new();
    let mut by_port: BTreeMap<Port, BTreeMap<AddressKey, bool>> = BTreeMap::new();
    for subset in subsets {
        let ports = subset.ports.iter().flatten().map(|port| {
            let port = port.clone();
            Some((port.name, port.port, port.protocol, port.app_protocol))
        });
        let mut ports: Vec<Port> = ports.collect();
        if ports.is_empty() {
            ports.push(None);
        }
        for (list, ready) in [
            (&subset.addresses, true),
            (&subset.not_ready_addresses, false),
        ] {
            for address in list.iter().flatten() {
                let key = address_key(address);
                addresses
                    .entry(key.clone())
                    .or_insert_with(|| address.clone());
                for port in &ports {
                    let known = by_port.entry(port.clone()).or_default();
                    // An address is ready only if it is ready in all subsets.
                    *known.entry(key.clone()).or_insert(true) &= ready;
                }
            }
        }
    }
    let mut by_addresses: BTreeMap<BTreeMap<AddressKey, bool>, BTreeSet<Port>> = BTreeMap::new();
    for (port, known) in by_port {
        by_addresses.entry(known).or_default().insert(port);
    }
    let subsets = by_addresses.into_iter().map(|(known, ports)| {
        let list = |wanted: bool| {
            let keys = known.iter().filter(|(_, ready)| **ready == wanted);
            let list: Vec<_> = keys
                .filter_map(|(key, _)| addresses.get(key).cloned())
                .collect();
            (!list.is_empty()).then_some(list)
        };
        let ports = ports.into_iter().flatten();
        let ports = ports.map(|(name, port, protocol, app_protocol)| EndpointPort {
            name,
            port,
            protocol,
            app_protocol,
        });
        let ports: Vec<EndpointPort> = ports.collect();
        EndpointSubset {
            addresses: list(true),
            not_ready_addresses: list(false),
            ports: (!ports.is_empty()).then_some(ports),
        }
    });
    subsets.collect()
}

fn count(list: &Option<Vec<EndpointAddress>>) -> usize {
    list.as_ref().map_or(0, Vec::len)
}

/// Returns true if subsets have too many addresses.
pub(super) fn is_over_capacity(subsets: &[EndpointSubset]) -> bool {
    let counts = subsets.iter();
    let counts = counts.map(|one| count(&one.addresses) + count(&one.not_ready_addresses));
    counts.sum::<usize>() > MAX_ADDRESSES
}

/// Removes the addresses over the maximum, first addresses that are not ready. The subsets keep
/// their proportions. Returns true if addresses were removed.
pub(super) fn truncate(subsets: &mut [EndpointSubset]) -> bool {
    if !is_over_capacity(subsets) {
        return false;
    }
    let ready: usize = subsets.iter().map(|one| count(&one.addresses)).sum();
    let unready: usize = subsets
        .iter()
        .map(|one| count(&one.not_ready_addresses))
        .sum();
    let only_ready = ready > MAX_ADDRESSES;
    let (room, total) = match only_ready {
        true => (MAX_ADDRESSES, ready),
        false => (MAX_ADDRESSES - ready, unready),
    };
    let mut left = room;
    for subset in subsets {
        let list = match only_ready {
            true => {
                subset.not_ready_addresses = None;
                &mut subset.addresses
            }
            false => &mut subset.not_ready_addresses,
        };
        if let Some(addresses) = list {
            let share = addresses.len().saturating_mul(room).div_ceil(total.max(1));
            addresses.truncate(share.min(left));
            left -= addresses.len();
            if addresses.is_empty() {
                *list = None;
            }
        }
    }
    true
}

/// The labels of a Service's Endpoints.
pub(super) fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels.clone();
    labels.remove(HEADLESS);
    if service.headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::{
        pod::NamedPort,
        service::TargetPort,
        testing::{pod, port, service},
    };

    fn names(list: &Option<Vec<EndpointAddress>>) -> Vec<String> {
        let names = list.iter().flatten();
        names
            .filter_map(|address| address.target_ref.as_ref()?.name.clone())
            .collect()
    }

    #[test]
    fn ready_and_other_pods_are_listed_apart() {
        let (mut service, mut unready, mut leaving) = (service(), pod("b"), pod("c"));
        unready.ready = false;
        leaving.terminating = true;
        let pods = [pod("a"), unready, leaving].map(Arc::new);
        let [one] = &desired(&service, &pods)[..] else {
            unreachable!("one port has one subset")
        };
        assert_eq!(names(&one.addresses), ["a"]);
        assert_eq!(names(&one.not_ready_addresses), ["b"]);
        assert_eq!(one.ports.as_ref().map(|ports| ports[0].port), Some(8080));
        service.publish_not_ready = true;
        assert_eq!(
            names(&desired(&service, &pods)[0].addresses),
            ["a", "b", "c"]
        );
    }

    #[test]
    fn ports_with_the_same_addresses_share_a_subset() {
        let mut service = service();
        service.ports = vec![
            port("x", TargetPort::Number(1)),
            port("y", TargetPort::Number(2)),
            port("z", TargetPort::Name("z".into())),
        ];
        let mut other = pod("b");
        other.ports = vec![NamedPort {
            name: "z".into(),
            protocol: "TCP".into(),
            port: 3,
        }];
        let subsets = desired(&service, &[pod("a"), other].map(Arc::new));
        let found: Vec<(Vec<String>, Vec<i32>)> = subsets
            .iter()
            .map(|one| {
                let ports = one.ports.iter().flatten().map(|port| port.port);
                (names(&one.addresses), ports.collect())
            })
            .collect();
        let both = (vec!["a".to_owned(), "b".to_owned()], vec![1, 2]);
        let one = (vec!["b".to_owned()], vec![3]);
        assert!(
            found.len() == 2 && found.contains(&both) && found.contains(&one),
            "{found:?}"
        );
        assert_eq!(repacked(&subsets), subsets);
    }

    #[test]
    fn a_headless_service_may_have_no_ports() {
        let mut service = service();
        service.ports.clear();
        let pods = [Arc::new(pod("a"))];
        assert!(desired(&service, &pods).is_empty());
        service.headless = true;
        let found = desired(&service, &pods);
        assert_eq!((found.len(), &found[0].ports), (1, &None));
    }

    #[test]
    fn at_most_a_thousand_addresses_are_listed() {
        let service = service();
        let mut pods: Vec<_> = (0..1300)
            .map(|number| pod(&format!("p{number:04}")))
            .collect();
        for pod in pods.iter_mut().skip(900) {
            pod.ready = false;
        }
        let pods: Vec<_> = pods.into_iter().map(Arc::new).collect();
        let mut subsets = desired(&service, &pods);
        assert!(truncate(&mut subsets));
        assert_eq!(count(&subsets[0].addresses), 900);
        assert_eq!(count(&subsets[0].not_ready_addresses), 100);
        assert!(!truncate(&mut subsets));
        let ready: Vec<_> = (0..1300)
            .map(|number| Arc::new(pod(&format!("p{number:04}"))))
            .collect();
        let mut subsets = desired(&service, &ready);
        assert!(truncate(&mut subsets));
        assert_eq!(count(&subsets[0].addresses), 1000);
    }
}
