//! The ports of a pod. Pods share the machine's network. A server of a pod that listens on all
//! addresses or on 127.0.0.1 listens on the pod's own address instead, so that the servers of two
//! pods can use the same port, as in other clusters. A connection of the pod to 127.0.0.1 goes to
//! the pod's own server at this port, or to the machine's if the pod has none. A connection to the
//! cluster's DNS server goes to its actual port if port 53 cannot be used.
//!
//! The kernel asks about each `bind` and `connect` of a container (seccomp user notification). A
//! separate process for each container (`init/ports.rs`) receives the question and asks the agent
//! for the address. If the address differs, the process executes the call on its copy of the socket
//! unless the kernel would deny the call. The kernel executes all other calls. The agent accesses
//! nothing of a container, whose memory may be a file that never answers. This is not a security
//! boundary, because a program can avoid it.

mod address;
mod listener;
mod message;
mod supervisor;

use std::{
    collections::{HashMap, HashSet},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use parking_lot::Mutex;

pub(super) use supervisor::{StartAnswering, supervise};

use crate::dns::Redirect;

/// The ports at which the servers of a pod listen on its own address, and the address of the
/// cluster's DNS server.
#[derive(Debug)]
pub(crate) struct PodPorts {
    /// The pod's address. `None` for the machine's network.
    address: Option<Ipv4Addr>,
    redirect: Option<Redirect>,
    bound: Mutex<HashSet<u16>>,
    /// The ports of ::1 at which servers without IPv4 connections listen, by the ports that they
    /// requested, because pods have no IPv6 address.
    ipv6_only: Mutex<HashMap<u16, u16>>,
}

impl PodPorts {
    /// Creates the ports of a pod with this address, and the redirection of connections.
    pub(crate) fn new(address: Option<Ipv4Addr>, redirect: Option<Redirect>) -> Self {
        Self {
            address,
            redirect,
            bound: Mutex::default(),
            ipv6_only: Mutex::default(),
        }
    }

    /// Returns the address at which a server listens instead of `address`, or `None` if the address
    /// does not change.
    fn listener(&self, address: SocketAddr) -> Option<SocketAddr> {
        address::own(address, self.address?)
    }

    /// Returns the address at which a server without IPv4 connections listens instead of at `port`.
    /// This is a port of ::1 that the kernel chooses or has chosen for the same port before, so
    /// that a second server of the pod finds it in use.
    fn ipv6_only_listener(&self, port: u16) -> SocketAddr {
        let chosen = self.ipv6_only.lock().get(&port).copied();
        SocketAddr::from((Ipv6Addr::LOCALHOST, chosen.unwrap_or(0)))
    }

    /// Returns the destination of a connection to `address`.
    fn destination(&self, address: SocketAddr) -> Option<SocketAddr> {
        let redirected = self
            .redirect
            .and_then(|Redirect { from, to }| address::replaced(address, from, to));
        if let Some(address) = redirected {
            return Some(address);
        }
        let is_local = address.ip() == Ipv6Addr::LOCALHOST;
        let ipv6_only = self.ipv6_only.lock().get(&address.port()).copied();
        let ipv6_only = ipv6_only.map(|port| SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
        ipv6_only.filter(|_| is_local).or_else(|| {
            self.listener(address)
                .filter(|own| self.bound.lock().contains(&own.port()))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_pod_reaches_its_servers_of_ipv6_only_at_the_ports_that_they_asked_for() {
        let ports = PodPorts::new(Some(Ipv4Addr::new(127, 16, 0, 9)), None);
        let destination = |address: &str| {
            let found = ports.destination(address.parse().unwrap());
            found.map(|address| address.to_string())
        };
        assert_eq!(destination("[::1]:80"), None);
        assert_eq!(ports.ipv6_only_listener(80).to_string(), "[::1]:0");
        ports.bound.lock().insert(80);
        assert_eq!(destination("[::1]:80").unwrap(), "[::ffff:127.16.0.9]:80");
        ports.ipv6_only.lock().insert(80, 45678);
        assert_eq!(ports.ipv6_only_listener(80).to_string(), "[::1]:45678");
        assert_eq!(destination("[::1]:80").unwrap(), "[::1]:45678");
        assert_eq!(destination("127.0.0.1:80").unwrap(), "127.16.0.9:80");
        assert_eq!(destination("[fd00::1]:80"), None);
    }
}
