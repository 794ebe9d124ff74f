//! The known Services and their endpoints, and the listeners and names that follow from them. Pure.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use crate::objects::{Address, Protocol, Service, ServicePort, Slice};

/// A namespace and a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: Option<&str>, name: &str) -> Self {
        Self {
            namespace: namespace.unwrap_or_default().to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns true if this is the Service of the API server. Pods get the address of the API
    /// server itself, so they do not need the Service.
    pub(crate) fn is_api_server(&self) -> bool {
        self.namespace == "default" && self.name == "kubernetes"
    }

    /// Returns the key of another object in the same namespace.
    fn beside(&self, name: &str) -> Self {
        Self {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }
}

/// A port of this machine at which a Service listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Listener {
    pub(crate) protocol: Protocol,
    pub(crate) address: SocketAddr,
}

/// The endpoints to which a listener forwards connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Without duplicates; never empty.
    pub(crate) endpoints: Arc<[SocketAddr]>,
    /// The time for which a client's connections go to the same endpoint.
    pub(crate) affinity: Option<Duration>,
}

/// A Service's name and its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceName {
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub name: String,
    /// The Service's cluster IP, or the addresses of its ready endpoints.
    pub addresses: Vec<IpAddr>,
}

impl ServiceName {
    /// Returns true if the Service has this namespace and name.
    #[must_use]
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }
}

/// The Services and their endpoints.
#[derive(Debug, Default)]
pub(crate) struct Table {
    services: BTreeMap<Key, Service>,
    /// The slices of each Service, by their names.
    slices: HashMap<Key, BTreeMap<String, Slice>>,
    /// The name of each slice's Service.
    owners: HashMap<Key, String>,
    /// The addresses of external names.
    external: HashMap<String, Vec<IpAddr>>,
}

impl Table {
    /// Adds a Service or changes it.
    pub(crate) fn put_service(&mut self, key: Key, service: Service) {
        self.services.insert(key, service);
    }

    /// Removes a Service.
    pub(crate) fn remove_service(&mut self, key: &Key) {
        self.services.remove(key);
    }

    /// Returns the Services that a slice belongs to: the earlier one, and `service`.
    pub(crate) fn owners_of(&self, slice: &Key, service: Option<&str>) -> BTreeSet<Key> {
        let earlier = self.owners.get(slice).map(String::as_str);
        let names = earlier.into_iter().chain(service);
        names.map(|name| slice.beside(name)).collect()
    }

    /// Adds a slice or changes it. A slice without a Service is ignored.
    pub(crate) fn put_slice(&mut self, key: &Key, service: Option<&str>, slice: Slice) {
        self.remove_slice(key);
        if let Some(name) = service {
            self.owners.insert(key.clone(), name.to_owned());
            let slices = self.slices.entry(key.beside(name)).or_default();
            slices.insert(key.name.clone(), slice);
        }
    }

    /// Removes a slice.
    pub(crate) fn remove_slice(&mut self, key: &Key) {
        let Some(service) = self.owners.remove(key).map(|name| key.beside(&name)) else {
            return;
        };
        if let Some(slices) = self.slices.get_mut(&service) {
            slices.remove(&key.name);
            if slices.is_empty() {
                self.slices.remove(&service);
            }
        }
    }

    pub(crate) fn service(&self, key: &Key) -> Option<&Service> {
        self.services.get(key)
    }

    /// Sets the addresses of an external name; returns whether they changed.
    pub(crate) fn set_external(&mut self, name: &str, addresses: Vec<IpAddr>) -> bool {
        self.external
            .insert(name.to_owned(), addresses.clone())
            .is_none_or(|before| before != addresses)
    }

    /// Returns the external names of the Services, and forgets the addresses of others.
    pub(crate) fn external_names(&mut self) -> BTreeSet<String> {
        let wanted: BTreeSet<String> = self
            .services
            .values()
            .filter_map(|service| match &service.address {
                Address::External(name) => Some(name.clone()),
                _ => None,
            })
            .collect();
        self.external.retain(|name, _| wanted.contains(name));
        wanted
    }

    /// Returns all Services.
    pub(crate) fn services(&self) -> impl Iterator<Item = (&Key, &Service)> {
        self.services.iter()
    }

    /// Returns true if a namespace has Services.
    pub(crate) fn has_services(&self, namespace: &str) -> bool {
        let first = Key::new(Some(namespace), "");
        let mut following = self.services.range(first..);
        following
            .next()
            .is_some_and(|(key, _)| key.namespace == namespace)
    }

    /// Returns the slices of a Service.
    pub(crate) fn slices(&self, service: &Key) -> impl Iterator<Item = &Slice> {
        self.slices
            .get(service)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// Returns the endpoints of a port: the ready ones or, if there are none, the ones that still
    /// serve while they terminate.
    fn endpoints(&self, service: &Key, port: &ServicePort) -> Vec<SocketAddr> {
        let ready: BTreeSet<SocketAddr> = self
            .slices(service)
            .flat_map(|slice| slice.at(port, |endpoint| endpoint.ready))
            .collect();
        if !ready.is_empty() {
            return ready.into_iter().collect();
        }
        let draining: BTreeSet<SocketAddr> = self
            .slices(service)
            .flat_map(|slice| slice.at(port, |endpoint| endpoint.draining))
            .collect();
        draining.into_iter().collect()
    }

    /// Returns the listeners of a Service: at its cluster IP, and for node ports at the addresses
    /// `nodes` and `localhost`. A port without endpoints has no listener, so that connections are
    /// refused.
    pub(crate) fn listeners(&self, key: &Key, nodes: &[Ipv4Addr]) -> BTreeMap<Listener, Target> {
        let Some((service, own)) =
            self.services
                .get(key)
                .and_then(|service| match service.address {
                    Address::Cluster(own) => Some((service, own)),
                    _ => None,
                })
        else {
            return BTreeMap::new();
        };
        let mut listeners = BTreeMap::new();
        for port in &service.ports {
            let endpoints = self.endpoints(key, port);
            if endpoints.is_empty() || port.protocol == Protocol::Other {
                continue;
            }
            let target = Target {
                endpoints: endpoints.into(),
                affinity: service.affinity,
            };
            let at = |address: Ipv4Addr, number: u16| Listener {
                protocol: port.protocol,
                address: SocketAddr::new(IpAddr::V4(address), number),
            };
            listeners.insert(at(own, port.port), target.clone());
            if let Some(number) = port.node_port {
                for address in nodes.iter().chain([&Ipv4Addr::LOCALHOST]) {
                    listeners.insert(at(*address, number), target.clone());
                }
            }
        }
        listeners
    }

    /// Returns a Service's name, if it has addresses.
    pub(crate) fn name(&self, key: &Key) -> Option<ServiceName> {
        let service = self.services.get(key)?;
        let addresses: Vec<IpAddr> = match &service.address {
            Address::Cluster(own) => vec![IpAddr::V4(*own)],
            Address::External(name) => self.external.get(name).cloned().unwrap_or_default(),
            Address::Headless => {
                let endpoints = self.slices(key).flat_map(|slice| &slice.endpoints);
                let ready: BTreeSet<IpAddr> = endpoints
                    .filter(|endpoint| endpoint.ready)
                    .flat_map(|endpoint| endpoint.addresses.iter().copied())
                    .collect();
                ready.into_iter().collect()
            }
            Address::None => Vec::new(),
        };
        if addresses.is_empty() {
            return None;
        }
        Some(ServiceName {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            addresses,
        })
    }

    /// Returns the names of all Services that have addresses.
    pub(crate) fn names(&self) -> Vec<ServiceName> {
        self.services
            .keys()
            .filter_map(|key| self.name(key))
            .collect()
    }

    /// Returns the Services of a namespace that have an address of their own.
    pub(crate) fn with_address(
        &self,
        namespace: &str,
    ) -> impl Iterator<Item = (&Key, Ipv4Addr, &Service)> {
        self.services
            .iter()
            .filter(move |(key, _)| key.namespace == namespace)
            .filter_map(|(key, service)| match service.address {
                Address::Cluster(address) => Some((key, address, service)),
                _ => None,
            })
    }
}

#[cfg(test)]
mod tests;
