//! The ports of a pod. Pods share the machine's network, but a server of a pod that listens
//! on all addresses, or on 127.0.0.1, listens on the pod's own address instead, so that the
//! servers of two pods may use the same port, as in other clusters. A connection of the pod to
//! 127.0.0.1 reaches its own server if there is one at that port, otherwise the machine's. A
//! connection to the cluster's DNS server reaches it where it listens, if port 53 cannot be used.
//!
//! The kernel asks about each `bind` and `connect` of a container (seccomp user notification). A
//! process of its own for each container (`init/ports.rs`) receives the question, asks the agent
//! for the address, and executes the call on its copy of the socket if the address is another one,
//! but no call that the kernel would refuse. The kernel executes all other calls. The agent
//! touches nothing of a container, whose memory may be a file that never answers. This does not
//! protect anything: a program can avoid it.

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

/// The ports at which the servers of a pod listen on its own address, and where it finds the
/// cluster's DNS server.
#[derive(Debug)]
pub(crate) struct PodPorts {
    /// `None` for the machine's network.
    address: Option<Ipv4Addr>,
    redirect: Option<Redirect>,
    bound: Mutex<HashSet<u16>>,
    /// The ports of ::1 at which servers that take no IPv4 connections listen, by the port that
    /// they asked for: pods have no IPv6 address.
    ipv6_only: Mutex<HashMap<u16, u16>>,
}

impl PodPorts {
    /// The ports of a pod with this address, and the connections to redirect.
    pub(crate) fn new(address: Option<Ipv4Addr>, redirect: Option<Redirect>) -> Self {
        Self {
            address,
            redirect,
            bound: Mutex::default(),
            ipv6_only: Mutex::default(),
        }
    }

    /// Returns where a server listens instead of at `address`; `None` if the address is to be
    /// used as it is.
    fn listener(&self, address: SocketAddr) -> Option<SocketAddr> {
        address::own(address, self.address?)
    }

    /// Returns where a server that takes no IPv4 connections listens instead of at `port`: at a
    /// port of ::1 that the kernel chooses, or the one that it chose for this port before, so
    /// that a second server of the pod finds it in use.
    fn ipv6_only_listener(&self, port: u16) -> SocketAddr {
        let chosen = self.ipv6_only.lock().get(&port).copied();
        SocketAddr::from((Ipv6Addr::LOCALHOST, chosen.unwrap_or(0)))
    }

    /// Returns the destination of a connection instead of `address`.
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
