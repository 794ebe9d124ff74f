//! The records of the cluster's names. Pure.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
};

use longshore_model::network::{FIRST_CLUSTER_IP, POD_ADDRESSES};

use super::{
    name::{Ports, ZONE, ZoneName, in_zone, label_of_address, reverse},
    record::{Data, Record},
};
use crate::{
    objects::{Address, Endpoint, Service},
    table::{Key, Table},
};

/// The names of pods, which the node knows.
pub trait PodNames: Send + Sync + 'static {
    /// Returns the addresses of the pods with this hostname and subdomain.
    fn addresses(&self, namespace: &str, subdomain: &str, hostname: &str) -> Vec<Ipv4Addr>;
    /// Returns true if a pod of the namespace has this address.
    fn has_address(&self, namespace: &str, address: Ipv4Addr) -> bool;
}

/// The result of looking up a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The name is in the zone of other servers.
    Elsewhere,
    /// The name does not exist.
    Missing,
    /// The name exists; it may have no records.
    Records {
        own: Vec<Record>,
        /// Additional records, such as the addresses of the names in `own`.
        additional: Vec<Record>,
    },
}

impl Found {
    fn records(own: Vec<Record>) -> Self {
        Self::Records {
            own,
            additional: Vec::new(),
        }
    }

    fn existing(own: Vec<Record>) -> Self {
        match own.is_empty() {
            true => Self::Missing,
            false => Self::records(own),
        }
    }
}

/// The zone of the cluster, and the addresses of its Services and pods.
pub(super) struct Zone<'a> {
    pub(super) table: &'a Table,
    pub(super) pods: &'a dyn PodNames,
    /// The address of the server.
    pub(super) server: Ipv4Addr,
    /// The version of the records.
    pub(super) serial: u32,
    /// Selects which of several addresses comes first.
    pub(super) turn: usize,
}

impl Zone<'_> {
    /// Returns the records of a name. Records of its ports are included if `with_ports` is true.
    /// The labels are in lower case, without the root.
    pub(super) fn find(&self, labels: &[String], with_ports: bool) -> Found {
        let Some(name) = in_zone(labels) else {
            return match reverse(labels) {
                Some(address) => self.names_of(address),
                None => Found::Elsewhere,
            };
        };
        match name {
            ZoneName::Zone => Found::records(vec![
                Record::of_question(Data::Authority),
                Record::of_question(Data::NameServer),
            ]),
            ZoneName::Version => Found::records(vec![Record::of_question(Data::Version)]),
            ZoneName::Server => Found::records(vec![Record::address(self.server.into())]),
            ZoneName::Parent => Found::records(Vec::new()),
            ZoneName::Namespace(namespace) => match self.table.has_services(&namespace) {
                true => Found::records(Vec::new()),
                false => Found::Missing,
            },
            ZoneName::Service(key, ports) => match self.table.service(&key) {
                Some(service) => self.service(&key, service, &ports, with_ports),
                None => Found::Missing,
            },
            ZoneName::Endpoint { service, hostname } => self.endpoint(&service, &hostname),
            ZoneName::Pod { namespace, address } => {
                let is_pod = match address {
                    IpAddr::V4(address) => self.pods.has_address(&namespace, address),
                    IpAddr::V6(_) => false,
                };
                Found::existing(
                    is_pod
                        .then(|| Record::address(address))
                        .into_iter()
                        .collect(),
                )
            }
            ZoneName::Unknown => Found::Missing,
        }
    }

    fn service(&self, key: &Key, service: &Service, ports: &Ports, with_ports: bool) -> Found {
        match &service.address {
            Address::External(name) if *ports == Ports::All => {
                Found::records(vec![Record::of_question(Data::Alias(name.clone()))])
            }
            Address::External(_) => Found::Missing,
            Address::None => Found::records(Vec::new()),
            Address::Headless => self.headless(key, ports, with_ports),
            Address::Cluster(own) => {
                let selected = service
                    .ports
                    .iter()
                    .filter(|port| ports.include(&port.name, port.protocol));
                let numbers: Vec<u16> = selected.map(|port| port.port).collect();
                if numbers.is_empty() && *ports != Ports::All {
                    return Found::Missing;
                }
                if matches!(ports, Ports::Protocol(_)) {
                    return Found::records(Vec::new());
                }
                let mut records = vec![Record::address(IpAddr::V4(*own))];
                let mut additional = Vec::new();
                if with_ports {
                    let target = name_of(key);
                    let weight = weight(numbers.len());
                    records.extend(numbers.iter().map(|port| {
                        Record::of_question(Data::Port {
                            port: *port,
                            weight,
                            target: target.clone(),
                        })
                    }));
                    additional.push(Record::address(IpAddr::V4(*own)).owned_by(target));
                }
                Found::Records {
                    own: records,
                    additional,
                }
            }
        }
    }

    fn headless(&self, key: &Key, ports: &Ports, with_ports: bool) -> Found {
        let mut addresses = BTreeSet::new();
        let mut targets = BTreeSet::new();
        for slice in self.table.slices(key) {
            let mut numbers: Vec<u16> = slice
                .ports
                .iter()
                .filter(|port| ports.include(&port.name, port.protocol))
                .map(|port| port.port)
                .collect();
            numbers.dedup();
            if numbers.is_empty() && *ports != Ports::All {
                continue;
            }
            for (endpoint, address) in ready(&slice.endpoints) {
                addresses.insert(address);
                if with_ports {
                    let hostname = hostname_of(endpoint, address);
                    targets.extend(
                        numbers
                            .iter()
                            .map(|port| (hostname.clone(), *port, address)),
                    );
                }
            }
        }
        if addresses.is_empty() {
            return Found::Missing;
        }
        if matches!(ports, Ports::Protocol(_)) {
            return Found::records(Vec::new());
        }
        let mut own = self.in_turn(addresses);
        let mut additional = Vec::new();
        let weight = weight(targets.len());
        let service = name_of(key);
        let mut before = None;
        for (hostname, port, address) in targets {
            let target = format!("{hostname}.{service}");
            additional.push(Record::address(address).owned_by(target.clone()));
            // A hostname with several addresses has one record.
            if before.replace((hostname.clone(), port)) != Some((hostname, port)) {
                own.push(Record::of_question(Data::Port {
                    port,
                    weight,
                    target,
                }));
            }
        }
        additional.dedup();
        Found::Records { own, additional }
    }

    fn endpoint(&self, service: &Key, hostname: &str) -> Found {
        let mut addresses: BTreeSet<IpAddr> = BTreeSet::new();
        if self.table.service(service).is_some() {
            let slices = self.table.slices(service);
            let endpoints = slices.flat_map(|slice| ready(&slice.endpoints));
            addresses.extend(
                endpoints
                    .filter(|(endpoint, address)| hostname_of(endpoint, *address) == hostname)
                    .map(|(_, address)| address),
            );
        }
        if addresses.is_empty() {
            // These names are also in hosts files.
            let pods = self
                .pods
                .addresses(&service.namespace, &service.name, hostname);
            addresses.extend(pods.into_iter().map(IpAddr::V4));
        }
        Found::existing(self.in_turn(addresses))
    }

    /// Returns the names of an address.
    fn names_of(&self, address: IpAddr) -> Found {
        let mut names = BTreeSet::new();
        for (key, service) in self.table.services() {
            if matches!(service.address, Address::Cluster(own) if IpAddr::V4(own) == address) {
                names.insert(name_of(key));
            }
            for slice in self.table.slices(key) {
                for (endpoint, other) in ready(&slice.endpoints) {
                    if other == address {
                        let hostname = hostname_of(endpoint, address);
                        names.insert(format!("{hostname}.{}", name_of(key)));
                    }
                }
            }
        }
        let is_own = matches!(address, IpAddr::V4(address)
            if (FIRST_CLUSTER_IP..=POD_ADDRESSES.1).contains(&address));
        if names.is_empty() && !is_own {
            return Found::Elsewhere;
        }
        let pointer = |name| Record::of_question(Data::Pointer(name));
        Found::existing(names.into_iter().map(pointer).collect())
    }

    fn in_turn(&self, addresses: BTreeSet<IpAddr>) -> Vec<Record> {
        let mut records: Vec<Record> = addresses.into_iter().map(Record::address).collect();
        let first = self.turn.checked_rem(records.len()).unwrap_or_default();
        records.rotate_left(first);
        records
    }
}

/// Returns the ready endpoints and their addresses.
fn ready(endpoints: &[Endpoint]) -> impl Iterator<Item = (&Endpoint, IpAddr)> {
    endpoints
        .iter()
        .filter(|endpoint| endpoint.ready)
        .flat_map(|endpoint| {
            endpoint
                .addresses
                .iter()
                .map(move |address| (endpoint, *address))
        })
}

fn hostname_of(endpoint: &Endpoint, address: IpAddr) -> String {
    let own = endpoint.hostname.clone();
    own.unwrap_or_else(|| label_of_address(address))
}

fn name_of(service: &Key) -> String {
    let Key { namespace, name } = service;
    format!("{name}.{namespace}.svc.{ZONE}")
}

/// Returns the weight of each of `count` records: they share 100.
fn weight(count: usize) -> u16 {
    let share = 100_usize.checked_div(count).unwrap_or(100).max(1);
    u16::try_from(share).unwrap_or(1)
}

#[cfg(test)]
mod tests;
