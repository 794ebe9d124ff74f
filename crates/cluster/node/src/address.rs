//! Pod addresses. Each pod has its own address in 127.16.0.0 to 127.254.255.255.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    net::Ipv4Addr,
    path::Path,
};

use longshore_model::network::{POD_ADDRESSES, is_pod_address};
use parking_lot::Mutex;

const FIRST: u32 = u32::from_be_bytes(POD_ADDRESSES.0.octets());
const LAST: u32 = u32::from_be_bytes(POD_ADDRESSES.1.octets());

/// Allocates addresses. The least recently used address is allocated next, so that a late packet
/// for an old pod does not reach a new pod.
#[derive(Debug)]
pub(crate) struct Addresses(Mutex<Pool>);

#[derive(Debug)]
struct Pool {
    used: HashSet<Ipv4Addr>,
    next: u32,
}

impl Addresses {
    /// Starts at an address derived from `folder`, so that two agents on one
    /// machine rarely allocate the same addresses.
    pub(crate) fn new(folder: &Path) -> Self {
        let mut hasher = DefaultHasher::new();
        folder.hash(&mut hasher);
        let offset = (hasher.finish() % u64::from((LAST - FIRST) >> 8)) as u32;
        Self(Mutex::new(Pool {
            used: HashSet::new(),
            next: FIRST + (offset << 8),
        }))
    }

    /// Allocates a free address; `None` if all are in use.
    pub(crate) fn take(&self) -> Option<Ipv4Addr> {
        let mut pool = self.0.lock();
        for _ in FIRST..=LAST {
            let candidate = Ipv4Addr::from(pool.next);
            pool.next = if pool.next >= LAST {
                FIRST
            } else {
                pool.next + 1
            };
            let ending = candidate.octets()[3];
            if ending != 0 && ending != 255 && pool.used.insert(candidate) {
                return Some(candidate);
            }
        }
        None
    }

    /// Allocates `address` again for the pod that had it. Returns true if the address was free.
    pub(crate) fn reserve(&self, address: Ipv4Addr) -> bool {
        is_pod_address(address) && self.0.lock().used.insert(address)
    }

    /// Frees an address.
    pub(crate) fn release(&self, address: Ipv4Addr) {
        self.0.lock().used.remove(&address);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_differ_and_are_in_the_block() {
        let addresses = Addresses::new(Path::new("/a"));
        let taken: HashSet<_> = (0..1000).map(|_| addresses.take().unwrap()).collect();
        assert_eq!(taken.len(), 1000);
        for address in taken {
            let [first, second, _, last] = address.octets();
            assert_eq!(first, 127);
            assert!((16..255).contains(&second) && last != 0 && last != 255);
        }
    }

    #[test]
    fn used_addresses_are_skipped_and_freed_ones_are_reused_last() {
        let addresses = Addresses::new(Path::new("/a"));
        let first = addresses.take().unwrap();
        let following = Ipv4Addr::from(u32::from(first) + 1);
        assert!(addresses.reserve(following));
        assert!(!addresses.reserve(following));
        addresses.release(first);
        let next = addresses.take().unwrap();
        assert!(next != first && next != following);
        assert!(!addresses.reserve(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn the_block_wraps_around() {
        let addresses = Addresses::new(Path::new("/a"));
        addresses.0.lock().next = LAST - 1;
        assert_eq!(addresses.take(), Some(Ipv4Addr::new(127, 254, 255, 254)));
        assert_eq!(addresses.take(), Some(Ipv4Addr::new(127, 16, 0, 1)));
    }
}
