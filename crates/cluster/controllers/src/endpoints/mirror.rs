//! The EndpointSlices of Endpoints that other clients write, for Services without a
//! selector. Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::{
        core::v1::{EndpointAddress, Endpoints},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use super::{
    desired::{self, MANAGED_BY, SERVICE_NAME},
    service::Family,
    slices::{Plan, PortKey, port_key},
    subsets::{self, MAX_ADDRESSES},
    trigger,
};

/// The value of the label `managed-by` of these slices.
pub(super) const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// The label of Endpoints that are not mirrored.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Endpoints with this annotation are locks of leader elections.
pub(super) const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The endpoints of one address family with the same ports.
struct Group {
    ports: Vec<EndpointPort>,
    endpoints: Vec<Endpoint>,
}

/// Decides the changes of the mirrored slices. `endpoints` are the Endpoints of a Service without a
/// selector.
pub(super) fn plan(endpoints: Option<&Endpoints>, existing: &[EndpointSlice]) -> Plan {
    let mut plan = Plan::default();
    let mut by_group: BTreeMap<(String, PortKey), Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in existing {
        let ports = port_key(slice.ports.as_deref().unwrap_or_default());
        let key = (slice.address_type.clone(), ports);
        by_group.entry(key).or_default().push(slice);
    }
    if let Some(endpoints) = endpoints.filter(|endpoints| is_mirrored(endpoints)) {
        for ((family, ports), group) in groups(endpoints) {
            let key = (family.clone(), ports);
            let mut slices = by_group.remove(&key).unwrap_or_default().into_iter();
            let mut new = slice(endpoints, &family, group);
            match slices.next() {
                None => plan.create.push(new),
                Some(old) if is_same(old, &new) => {}
                Some(old) => {
                    let ObjectMeta {
                        labels,
                        annotations,
                        ..
                    } = new.metadata;
                    new.metadata = old.metadata.clone();
                    (new.metadata.labels, new.metadata.annotations) = (labels, annotations);
                    plan.update.push(new);
                }
            }
            plan.delete.extend(slices.cloned());
        }
    }
    plan.delete
        .extend(by_group.into_values().flatten().cloned());
    plan
}

fn is_mirrored(endpoints: &Endpoints) -> bool {
    let meta = &endpoints.metadata;
    let labels = meta.labels.as_ref();
    let skipped = labels.and_then(|labels| labels.get(SKIP));
    let annotations = meta.annotations.as_ref();
    skipped.is_none_or(|value| value != "true")
        && !annotations.is_some_and(|all| all.contains_key(LEADER))
        && meta.deletion_timestamp.is_none()
}

/// Returns the endpoints of all subsets by address family and ports. At most a thousand addresses
/// of each subset are mirrored.
fn groups(endpoints: &Endpoints) -> BTreeMap<(String, PortKey), Group> {
    let mut groups: BTreeMap<(String, PortKey), Group> = BTreeMap::new();
    for subset in subsets::repacked(endpoints.subsets.as_deref().unwrap_or_default()) {
        let ports = subset.ports.iter().flatten().map(|port| EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(port.port),
            protocol: port.protocol.clone(),
            app_protocol: port.app_protocol.clone(),
        });
        let ports: Vec<EndpointPort> = ports.collect();
        let ready = subset.addresses.iter().flatten().map(|one| (one, true));
        let other = subset.not_ready_addresses.iter().flatten();
        let all = ready.chain(other.map(|one| (one, false)));
        let converted = all.filter_map(|(address, ready)| endpoint(address, ready));
        for (family, endpoint) in converted.take(MAX_ADDRESSES) {
            let key = (family.as_str().to_owned(), port_key(&ports));
            let group = groups.entry(key).or_insert_with(|| Group {
                ports: ports.clone(),
                endpoints: Vec::new(),
            });
            if group.endpoints.len() < MAX_ADDRESSES {
                group.endpoints.push(endpoint);
            }
        }
    }
    groups
}

/// Converts an address. Returns `None` if the address is invalid.
fn endpoint(address: &EndpointAddress, ready: bool) -> Option<(Family, Endpoint)> {
    let ip: std::net::IpAddr = address.ip.parse().ok()?;
    let family = match ip.is_ipv4() {
        true => Family::V4,
        false => Family::V6,
    };
    let endpoint = Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            ..EndpointConditions::default()
        }),
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        hostname: address.hostname.clone().filter(|name| !name.is_empty()),
        ..Endpoint::default()
    };
    Some((family, endpoint))
}

fn slice(endpoints: &Endpoints, family: &str, group: Group) -> EndpointSlice {
    let meta = &endpoints.metadata;
    let name = meta.name.clone().unwrap_or_default();
    let mut labels = meta.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.to_owned(), name.clone());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let mut annotations = meta.annotations.clone().unwrap_or_default();
    annotations.remove(LAST_APPLIED);
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(desired::prefix(&name)),
            namespace: meta.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Endpoints".to_owned(),
                name,
                uid: meta.uid.clone().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        address_type: family.to_owned(),
        endpoints: Some(group.endpoints),
        ports: Some(group.ports),
    }
}

/// Returns true if a slice has this content. The trigger time is ignored.
fn is_same(old: &EndpointSlice, new: &EndpointSlice) -> bool {
    let annotations = |slice: &EndpointSlice| {
        let mut annotations = slice.metadata.annotations.clone().unwrap_or_default();
        annotations.remove(trigger::ANNOTATION);
        annotations
    };
    let owners = |slice: &EndpointSlice| -> BTreeSet<String> {
        let owners = slice.metadata.owner_references.iter().flatten();
        owners.map(|owner| owner.uid.clone()).collect()
    };
    old.metadata.labels == new.metadata.labels
        && annotations(old) == annotations(new)
        && owners(old) == owners(new)
        && old.endpoints == new.endpoints
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn endpoints(labels: Value, subsets: Value) -> Endpoints {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "a", "uid": "e", "labels": labels,
                "annotations": {"note": "x", LAST_APPLIED: "{}"}},
            "subsets": subsets,
        }))
        .unwrap()
    }

    fn carried_out(plan: Plan) -> Vec<EndpointSlice> {
        let mut slices = plan.create;
        for (at, slice) in slices.iter_mut().enumerate() {
            slice.metadata.name = Some(format!("web-{at}"));
        }
        slices
    }

    #[test]
    fn subsets_become_slices_of_each_family() {
        let own = endpoints(
            json!({"team": "x"}),
            json!([
                {"addresses": [{"ip": "10.0.0.1", "hostname": "h"}, {"ip": "fd00::1"}],
                 "notReadyAddresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 80}]},
                {"addresses": [{"ip": "10.0.0.3"}], "ports": [{"name": "m", "port": 81}]},
            ]),
        );
        let slices = carried_out(plan(Some(&own), &[]));
        let found: Vec<_> = slices
            .iter()
            .map(|slice| {
                let endpoints = slice.endpoints.iter().flatten();
                let endpoints = endpoints.map(|endpoint| {
                    let ready = endpoint.conditions.as_ref().and_then(|one| one.ready);
                    (endpoint.addresses[0].as_str(), ready == Some(true))
                });
                (slice.address_type.as_str(), endpoints.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(
            found,
            [
                ("IPv4", vec![("10.0.0.1", true), ("10.0.0.2", false)]),
                ("IPv4", vec![("10.0.0.3", true)]),
                ("IPv6", vec![("fd00::1", true)]),
            ]
        );
        let meta = &slices[0].metadata;
        let labels = meta.labels.as_ref().unwrap();
        assert_eq!((&*labels["team"], &*labels[MANAGED_BY]), ("x", MANAGER));
        assert_eq!(
            meta.annotations
                .as_ref()
                .unwrap()
                .keys()
                .collect::<Vec<_>>(),
            ["note"]
        );
        assert_eq!(plan(Some(&own), &slices), Plan::default());
    }

    #[test]
    fn changes_follow_and_surplus_slices_are_deleted() {
        let of = |ip: &str| {
            endpoints(
                json!({}),
                json!([{"addresses": [{"ip": ip}], "ports": [{"port": 80}]}]),
            )
        };
        let slices = carried_out(plan(Some(&of("10.0.0.1")), &[]));
        let changed = plan(Some(&of("10.0.0.2")), &slices);
        assert_eq!(
            (
                changed.create.len(),
                changed.update.len(),
                changed.delete.len()
            ),
            (0, 1, 0)
        );
        assert_eq!(changed.update[0].metadata.name.as_deref(), Some("web-0"));
        for gone in [None, Some(endpoints(json!({SKIP: "true"}), json!([])))] {
            let removed = plan(gone.as_ref(), &slices);
            assert_eq!((removed.create.len(), removed.delete.len()), (0, 1));
        }
    }
}
