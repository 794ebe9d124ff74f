//! The addresses of the observed Services. Pure.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
};

use crate::key::Key;

/// The addresses by Service, and the Services by address.
#[derive(Debug, Default)]
pub(super) struct Store {
    services: HashMap<Key, Vec<IpAddr>>,
    owners: BTreeMap<IpAddr, Key>,
}

impl Store {
    /// Records the addresses of a Service. Returns the addresses whose Service has changed.
    pub(super) fn put(&mut self, key: &Key, addresses: Vec<IpAddr>) -> Vec<IpAddr> {
        if self.services.get(key) == Some(&addresses) {
            return Vec::new();
        }
        let mut changed = self.remove(key);
        for address in &addresses {
            self.owners.insert(*address, key.clone());
        }
        changed.extend(&addresses);
        if !addresses.is_empty() {
            self.services.insert(key.clone(), addresses);
        }
        changed
    }

    /// Removes a Service. Returns its addresses.
    pub(super) fn remove(&mut self, key: &Key) -> Vec<IpAddr> {
        let addresses = self.services.remove(key).unwrap_or_default();
        for address in &addresses {
            // Another Service may have the address already.
            if self.owners.get(address) == Some(key) {
                self.owners.remove(address);
            }
        }
        addresses
    }

    /// Returns the Service that has an address.
    pub(super) fn owner(&self, address: &IpAddr) -> Option<&Key> {
        self.owners.get(address)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 96, 0, last])
    }

    #[test]
    fn addresses_follow_their_services() {
        let (mut store, a, b) = (Store::default(), Key::new("n", "a"), Key::new("n", "b"));
        assert_eq!(store.put(&a, vec![ip(1)]), [ip(1)]);
        assert!(store.put(&a, vec![ip(1)]).is_empty());
        assert_eq!(store.put(&a, vec![ip(2)]), [ip(1), ip(2)]);
        assert_eq!((store.owner(&ip(1)), store.owner(&ip(2))), (None, Some(&a)));
        // The deletion of a Service may be observed after its address was used again.
        store.put(&b, vec![ip(2)]);
        assert_eq!(store.remove(&a), [ip(2)]);
        assert_eq!(store.owner(&ip(2)), Some(&b));
        assert_eq!(store.put(&b, Vec::new()), [ip(2)]);
        assert_eq!(store.owner(&ip(2)), None);
    }
}
