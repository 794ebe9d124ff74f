//! The ports of a pod. Pods share the machine's network, but a server of a pod that listens
//! on all addresses, or on 127.0.0.1, listens on the pod's own address instead, so that the
//! servers of two pods may use the same port, as in other clusters. A connection of the pod to
//! 127.0.0.1 reaches its own server if there is one at that port, otherwise the machine's.
//!
//! The kernel asks the agent about each `bind` and `connect` of a container (seccomp user
//! notification). The agent executes those that it changes on its copy of the socket, and lets
//! the kernel execute all others unchanged. This is no protection: a program can avoid it.

mod address;
mod notification;
mod supervisor;

use std::{collections::HashSet, net::Ipv4Addr, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

pub(super) use supervisor::supervise;

/// The number of a pod's connections to itself that may wait for its servers at a time. Each
/// blocks a thread of the agent.
const CONNECTING: usize = 8;

/// The ports at which the servers of a pod listen on its own address.
#[derive(Debug)]
pub(crate) struct PodPorts {
    address: Ipv4Addr,
    bound: Mutex<HashSet<u16>>,
    connecting: Arc<Semaphore>,
}

impl PodPorts {
    /// The ports of a pod with this address.
    pub(crate) fn new(address: Ipv4Addr) -> Self {
        Self {
            address,
            bound: Mutex::default(),
            connecting: Arc::new(Semaphore::new(CONNECTING)),
        }
    }
}
