//! The loopback addresses of the embedded cluster. All programs of the machine reach them,
//! and listening on them needs no privileges.

use std::net::Ipv4Addr;

/// The range of cluster IPs in CIDR notation. Pods have the addresses above it.
pub const SERVICE_CIDR: &str = "127.8.0.0/13";

/// The first cluster IP that is allocated.
pub const FIRST_CLUSTER_IP: Ipv4Addr = Ipv4Addr::new(127, 8, 0, 1);

/// The last cluster IP that is allocated.
pub const LAST_CLUSTER_IP: Ipv4Addr = Ipv4Addr::new(127, 15, 255, 254);
