//! Decides which EndpointSlices of a Service to create, change and delete. Pure.
//!
//! Endpoints stay in their slice as long as they exist, so that few slices change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};

use super::{
    desired::{endpoint, labels, labels_differ, ports, slice},
    pod::PodFacts,
    service::{Family, Service},
};

/// The maximum number of endpoints in a slice, as in Kubernetes.
pub(super) const MAX_ENDPOINTS: usize = 100;

/// The changes of a Service's slices.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<EndpointSlice>,
}

/// The identity of an endpoint. Other changes of an endpoint leave it in its slice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct EndpointKey {
    pod: Option<(String, String)>,
    addresses: BTreeSet<String>,
    hostname: Option<String>,
}

impl EndpointKey {
    fn of(endpoint: &Endpoint) -> Self {
        let pod = endpoint.target_ref.as_ref().map(|target| {
            let text = |field: &Option<String>| field.clone().unwrap_or_default();
            (text(&target.namespace), text(&target.name))
        });
        Self {
            pod,
            addresses: endpoint.addresses.iter().cloned().collect(),
            hostname: endpoint.hostname.clone().filter(|name| !name.is_empty()),
        }
    }
}

/// The ports of a slice; their order does not matter.
pub(super) type PortKey = BTreeSet<(Option<String>, Option<i32>, Option<String>, Option<String>)>;

/// The key of ports.
pub(super) fn port_key(ports: &[EndpointPort]) -> PortKey {
    let ports = ports.iter().map(|port| {
        (
            port.name.clone(),
            port.port,
            port.protocol.clone(),
            port.app_protocol.clone(),
        )
    });
    ports.collect()
}

fn is_owned(slice: &EndpointSlice, service: &Service) -> bool {
    let owners = slice.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| {
        owner.uid == service.uid && owner.kind == "Service" && owner.api_version == "v1"
    })
}

fn endpoints(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

/// Returns true if two endpoints with the same key have the same content.
fn is_same(one: &Endpoint, other: &Endpoint) -> bool {
    let uid = |endpoint: &Endpoint| endpoint.target_ref.as_ref().and_then(|pod| pod.uid.clone());
    (&one.node_name, &one.zone, &one.conditions, uid(one))
        == (&other.node_name, &other.zone, &other.conditions, uid(other))
}

/// Endpoints with the same ports.
struct Group {
    ports: Vec<EndpointPort>,
    endpoints: BTreeMap<EndpointKey, Endpoint>,
}

/// Decides the changes of the slices of a Service. `zone` returns the zone of a node, or `None` if
/// the node does not exist. Pods of such a node are left out unless addresses are also published
/// when they are not ready.
pub(super) fn plan(
    service: &Service,
    pods: &[Arc<PodFacts>],
    zone: impl Fn(&str) -> Option<String>,
    existing: &[EndpointSlice],
) -> Plan {
    let mut plan = Plan::default();
    let supported = |slice: &&EndpointSlice| {
        let mut families = service.families.iter();
        families.any(|family| family.as_str() == slice.address_type)
    };
    for family in &service.families {
        let existing = existing.iter();
        let existing = existing.filter(|slice| slice.address_type == family.as_str());
        plan_family(
            service,
            pods,
            &zone,
            *family,
            &existing.collect::<Vec<_>>(),
            &mut plan,
        );
    }
    let others = existing.iter().filter(|slice| !supported(slice));
    plan.delete.extend(others.cloned());
    if service.deleting {
        // The garbage collector deletes the slices.
        plan.create.clear();
    }
    plan
}

fn plan_family(
    service: &Service,
    pods: &[Arc<PodFacts>],
    zone: impl Fn(&str) -> Option<String>,
    family: Family,
    existing: &[&EndpointSlice],
    plan: &mut Plan,
) {
    let mut groups: BTreeMap<PortKey, Group> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.is_published()) {
        let zone = zone(&pod.node);
        if zone.is_none() && !service.publish_not_ready {
            continue;
        }
        let ports = ports(service, pod);
        let group = groups.entry(port_key(&ports)).or_insert_with(|| Group {
            ports,
            endpoints: BTreeMap::new(),
        });
        let endpoint = endpoint(service, pod, family, zone.as_deref());
        if !endpoint.addresses.is_empty() {
            group.endpoints.insert(EndpointKey::of(&endpoint), endpoint);
        }
    }
    let mut by_ports: BTreeMap<PortKey, Vec<&EndpointSlice>> = BTreeMap::new();
    let (mut create, mut update, mut delete) = (Vec::new(), Vec::new(), Vec::new());
    for slice in existing {
        if is_owned(slice, service) {
            let key = port_key(slice.ports.as_deref().unwrap_or_default());
            by_ports.entry(key).or_default().push(slice);
        } else {
            delete.push((*slice).clone());
        }
    }
    for (key, group) in groups {
        let slices = by_ports.remove(&key).unwrap_or_default();
        let mut filled = fill(service, family, group, &slices);
        create.append(&mut filled.create);
        update.append(&mut filled.update);
        delete.append(&mut filled.delete);
    }
    delete.extend(by_ports.into_values().flatten().cloned());
    if existing.len() == delete.len() && create.is_empty() {
        // A Service without endpoints has one empty slice.
        match delete.as_slice() {
            [one] if is_placeholder(one, service) => delete.clear(),
            _ => create.push(slice(service, family, Vec::new())),
        }
    }
    // Slices to delete are reused for slices to create.
    let mut remaining = Vec::new();
    for old in delete {
        match create.pop() {
            Some(new) if is_owned(&old, service) => update.push(renamed(new, &old)),
            Some(new) => {
                create.push(new);
                remaining.push(old);
            }
            None => remaining.push(old),
        }
    }
    plan.create.append(&mut create);
    plan.update.append(&mut update);
    plan.delete.append(&mut remaining);
}

/// Returns true if a slice is the empty slice of a Service without endpoints.
fn is_placeholder(slice: &EndpointSlice, service: &Service) -> bool {
    is_owned(slice, service)
        && endpoints(slice).is_empty()
        && slice.ports.as_deref().unwrap_or_default().is_empty()
        && slice.metadata.labels.as_ref() == Some(&labels(service))
}

/// Returns a new slice's content under the name of an existing slice.
fn renamed(mut new: EndpointSlice, old: &EndpointSlice) -> EndpointSlice {
    let labels = new.metadata.labels.take();
    new.metadata = old.metadata.clone();
    new.metadata.labels = labels;
    new
}

/// Distributes the endpoints of a group over its slices.
fn fill(service: &Service, family: Family, group: Group, slices: &[&EndpointSlice]) -> Plan {
    let Group {
        ports,
        endpoints: mut missing,
    } = group;
    let mut plan = Plan::default();
    let mut unchanged: Vec<EndpointSlice> = Vec::new();
    for old in slices {
        let mut changed = false;
        let mut kept = Vec::new();
        for known in endpoints(old) {
            if let Some(wanted) = missing.remove(&EndpointKey::of(known)) {
                changed |= !is_same(&wanted, known);
                kept.push(wanted);
            }
        }
        changed |= kept.len() != endpoints(old).len();
        if changed && kept.is_empty() {
            plan.delete.push((*old).clone());
        } else if changed || labels_differ(old, service) {
            let mut new = (*old).clone();
            new.endpoints = Some(kept);
            new.metadata.labels = Some(labels(service));
            plan.update.push(new);
        } else {
            unchanged.push((*old).clone());
        }
    }
    // The fullest slices come first.
    plan.update
        .sort_by_key(|slice| std::cmp::Reverse(endpoints(slice).len()));
    for slice in &mut plan.update {
        move_to(slice, &mut missing);
    }
    while !missing.is_empty() {
        let room = |slice: &EndpointSlice| {
            MAX_ENDPOINTS.checked_sub(endpoints(slice).len() + missing.len())
        };
        let fitting = unchanged.iter().enumerate();
        let fitting = fitting.filter_map(|(at, slice)| Some((room(slice)?, at)));
        // An empty slice is not better than a new one.
        let best = fitting.filter(|(room, _)| *room < MAX_ENDPOINTS).min();
        match best {
            Some((_, at)) => {
                let mut old = unchanged.swap_remove(at);
                move_to(&mut old, &mut missing);
                plan.update.push(old);
            }
            None => {
                let mut new = slice(service, family, ports.clone());
                move_to(&mut new, &mut missing);
                plan.create.push(new);
            }
        }
    }
    plan
}

/// Moves endpoints into a slice until it is full.
fn move_to(slice: &mut EndpointSlice, missing: &mut BTreeMap<EndpointKey, Endpoint>) {
    let list = slice.endpoints.get_or_insert_default();
    while list.len() < MAX_ENDPOINTS
        && let Some((_, endpoint)) = missing.pop_first()
    {
        list.push(endpoint);
    }
}

#[cfg(test)]
mod tests;
