//! What runs now: the containers that sessions can be opened with.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use super::{Attachment, SessionError};
use crate::sandbox::{Command, Process};

/// A container that runs.
pub(crate) struct Container {
    /// Its init; gone when the container is.
    pub(crate) process: Weak<Process>,
    /// How it was started.
    pub(crate) command: Arc<Command>,
    /// Its streams.
    pub(crate) attachment: Arc<Attachment>,
}

#[derive(Default)]
struct Pod {
    address: Option<Ipv4Addr>,
    containers: HashMap<String, Arc<Container>>,
}

/// What runs now, by the pods' uids.
#[derive(Default)]
pub(crate) struct Live(Mutex<HashMap<String, Pod>>);

impl Live {
    /// A pod has its address.
    pub(crate) fn set_address(&self, uid: &str, address: Ipv4Addr) {
        self.0.lock().entry(uid.to_owned()).or_default().address = Some(address);
    }

    /// A container has started.
    pub(crate) fn started(&self, uid: &str, name: &str, container: Container) {
        let mut pods = self.0.lock();
        let pod = pods.entry(uid.to_owned()).or_default();
        pod.containers.insert(name.to_owned(), Arc::new(container));
    }

    /// A container has ended.
    pub(crate) fn ended(&self, uid: &str, name: &str) {
        if let Some(pod) = self.0.lock().get_mut(uid) {
            pod.containers.remove(name);
        }
    }

    /// A pod is through.
    pub(crate) fn removed(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    pub(super) fn container(&self, uid: &str, name: &str) -> Result<Arc<Container>, SessionError> {
        let pods = self.0.lock();
        let found = pods.get(uid).and_then(|pod| pod.containers.get(name));
        found
            .cloned()
            .ok_or_else(|| SessionError::NotRunning(format!("container not found ({name:?})")))
    }

    pub(super) fn address(&self, uid: &str) -> Result<Ipv4Addr, SessionError> {
        let pods = self.0.lock();
        let found = pods.get(uid).and_then(|pod| pod.address);
        found.ok_or_else(|| {
            SessionError::NotRunning(format!("the pod of uid {uid} does not run on this node"))
        })
    }
}
