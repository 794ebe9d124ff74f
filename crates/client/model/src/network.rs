//! The loopback addresses of the embedded cluster. All programs of the machine reach them,
//! and listening on them needs no privileges.

use std::net::Ipv4Addr;

/// The address of the first node. It differs from `localhost`, because pods can request a port of
/// one of the two (`hostIP`).
pub const NODE_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 7, 0, 1);

/// The maximum number of nodes of an embedded cluster.
pub const MAX_NODES: u8 = 100;

/// Returns the address of the node with this index, starting at 0.
///
/// ```
/// use longshore_model::network::{NODE_ADDRESS, node_address};
///
/// assert_eq!(node_address(0), NODE_ADDRESS);
/// assert_eq!(node_address(2).to_string(), "127.7.0.3");
/// ```
#[must_use]
pub const fn node_address(index: u8) -> Ipv4Addr {
    Ipv4Addr::from_bits(NODE_ADDRESS.to_bits().saturating_add(index as u32))
}

/// The range of cluster IPs in CIDR notation. Pods have the addresses above it.
pub const SERVICE_CIDR: &str = "127.8.0.0/13";

/// The first cluster IP that is allocated.
pub const FIRST_CLUSTER_IP: Ipv4Addr = Ipv4Addr::new(127, 8, 0, 1);

/// The last cluster IP that is allocated.
pub const LAST_CLUSTER_IP: Ipv4Addr = Ipv4Addr::new(127, 15, 255, 254);

/// The first and the last address of pods.
pub const POD_ADDRESSES: (Ipv4Addr, Ipv4Addr) = (
    Ipv4Addr::new(127, 16, 0, 0),
    Ipv4Addr::new(127, 254, 255, 255),
);

/// Returns true if a pod may have an address.
///
/// ```
/// use longshore_model::network::is_pod_address;
///
/// assert!(is_pod_address("127.16.0.1".parse().unwrap()));
/// assert!(!is_pod_address("127.0.0.1".parse().unwrap()));
/// ```
#[must_use]
pub fn is_pod_address(address: Ipv4Addr) -> bool {
    (POD_ADDRESSES.0..=POD_ADDRESSES.1).contains(&address)
}
