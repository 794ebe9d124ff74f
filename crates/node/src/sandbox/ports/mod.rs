//! The ports of a pod. Pods share the machine's network, but a server of a pod that listens
//! on all addresses, or on 127.0.0.1, listens on the pod's own address instead, so that the
//! servers of two pods may use the same port, as in other clusters. A connection of the pod to
//! 127.0.0.1 reaches its own server if there is one at that port, otherwise the machine's. A
//! connection to the cluster's DNS server reaches it where it listens, if port 53 cannot be used.
//!
//! The kernel asks the agent about each `bind` and `connect` of a container (seccomp user
//! notification). The agent executes those that it changes on its copy of the socket, and lets
//! the kernel execute all others unchanged. This is no protection: a program can avoid it.

mod address;
mod notification;
mod supervisor;

use std::{
    collections::HashSet,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

pub(super) use supervisor::supervise;

use crate::dns::Redirect;

/// The number of a pod's connections to itself that may wait for its servers at a time. Each
/// blocks a thread of the agent.
const CONNECTING: usize = 8;

/// The ports at which the servers of a pod listen on its own address, and where it finds the
/// cluster's DNS server.
#[derive(Debug)]
pub(crate) struct PodPorts {
    /// `None` for the machine's network.
    address: Option<Ipv4Addr>,
    redirect: Option<Redirect>,
    bound: Mutex<HashSet<u16>>,
    connecting: Arc<Semaphore>,
}

impl PodPorts {
    /// The ports of a pod with this address, and the connections to redirect.
    pub(crate) fn new(address: Option<Ipv4Addr>, redirect: Option<Redirect>) -> Self {
        Self {
            address,
            redirect,
            bound: Mutex::default(),
            connecting: Arc::new(Semaphore::new(CONNECTING)),
        }
    }

    /// Returns where a server listens instead of at `address`; `None` if the address is to be
    /// used as it is.
    fn listener(&self, address: SocketAddr) -> Option<SocketAddr> {
        address::own(address, self.address?)
    }

    /// Returns the destination of a connection instead of `address`.
    fn destination(&self, address: SocketAddr) -> Option<SocketAddr> {
        let redirected = self
            .redirect
            .and_then(|Redirect { from, to }| address::replaced(address, from, to));
        redirected.or_else(|| {
            self.listener(address)
                .filter(|own| self.bound.lock().contains(&own.port()))
        })
    }
}
