//! What runs now: the containers that sessions can be opened with.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::{Attachment, COMMANDS, SessionError};
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
pub(crate) struct Live {
    pods: Mutex<HashMap<String, Pod>>,
    /// Room for commands that are run by exec.
    commands: Arc<Semaphore>,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            pods: Mutex::default(),
            commands: Arc::new(Semaphore::new(COMMANDS)),
        }
    }
}

impl Live {
    /// Room for commands that are run by exec.
    pub(crate) fn commands(&self) -> Arc<Semaphore> {
        self.commands.clone()
    }

    /// A pod has its address.
    pub(crate) fn set_address(&self, uid: &str, address: Ipv4Addr) {
        self.pods.lock().entry(uid.to_owned()).or_default().address = Some(address);
    }

    /// A container has started.
    pub(crate) fn started(&self, uid: &str, name: &str, container: Container) {
        let mut pods = self.pods.lock();
        let pod = pods.entry(uid.to_owned()).or_default();
        pod.containers.insert(name.to_owned(), Arc::new(container));
    }

    /// A container has ended.
    pub(crate) fn ended(&self, uid: &str, name: &str) {
        if let Some(pod) = self.pods.lock().get_mut(uid) {
            pod.containers.remove(name);
        }
    }

    /// A pod is through.
    pub(crate) fn removed(&self, uid: &str) {
        self.pods.lock().remove(uid);
    }

    pub(crate) fn container(&self, uid: &str, name: &str) -> Result<Arc<Container>, SessionError> {
        let pods = self.pods.lock();
        let found = pods.get(uid).and_then(|pod| pod.containers.get(name));
        found
            .cloned()
            .ok_or_else(|| SessionError::NotRunning(format!("container not found ({name:?})")))
    }

    /// The processes of a pod's containers.
    pub(crate) fn processes(&self, uid: &str) -> Vec<Weak<Process>> {
        let pods = self.pods.lock();
        let containers = pods
            .get(uid)
            .into_iter()
            .flat_map(|pod| pod.containers.values());
        containers
            .map(|container| container.process.clone())
            .collect()
    }

    pub(crate) fn address(&self, uid: &str) -> Result<Ipv4Addr, SessionError> {
        let pods = self.pods.lock();
        let found = pods.get(uid).and_then(|pod| pod.address);
        found.ok_or_else(|| {
            SessionError::NotRunning(format!("the pod of uid {uid} does not run on this node"))
        })
    }
}
