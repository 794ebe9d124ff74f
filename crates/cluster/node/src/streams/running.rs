//! The running containers, to which sessions can be opened.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Weak},
};

use longshore_node_api::SessionError;
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Attachment;
use crate::{
    cgroups::Group,
    sandbox::{Command, Process},
};

/// The maximum number of concurrent exec commands if the process may open enough files.
const MAX_EXEC_COMMANDS: usize = 2000;
/// The number of open files for each exec command.
const FILES_PER_COMMAND: usize = 16;

/// A running container.
pub(crate) struct Container {
    /// The container's init process. Dropped when the container ends.
    pub(crate) process: Weak<Process>,
    /// The command it was started with.
    pub(crate) command: Arc<Command>,
    /// The container's streams.
    pub(crate) attachment: Arc<Attachment>,
}

/// The init process of a running container.
#[derive(Debug, Clone)]
pub(crate) struct ContainerProcess {
    pub(crate) pod_uid: String,
    pub(crate) name: String,
    pub(crate) id: i32,
    /// The cgroup of the process.
    pub(crate) cgroup: Option<Arc<Group>>,
}

#[derive(Default)]
struct Pod {
    address: Option<Ipv4Addr>,
    containers: HashMap<String, Arc<Container>>,
}

/// Running containers by the uids of their pods.
pub(crate) struct RunningContainers {
    pods: Mutex<HashMap<String, Pod>>,
    /// Limits the number of commands that exec runs.
    commands: Arc<Semaphore>,
    max_commands: usize,
}

/// Returns the maximum number of concurrent exec commands, including those whose clients
/// disconnected, for a limit of open files; `None` means no limit.
fn max_commands(files: Option<u64>) -> usize {
    let files = files.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    });
    (files / FILES_PER_COMMAND).clamp(16, MAX_EXEC_COMMANDS)
}

impl Default for RunningContainers {
    fn default() -> Self {
        let max_commands = max_commands(getrlimit(Resource::Nofile).current);
        Self {
            pods: Mutex::default(),
            commands: Arc::new(Semaphore::new(max_commands)),
            max_commands,
        }
    }
}

impl RunningContainers {
    /// Counts an exec command until the permit is dropped. Returns the maximum number as an error
    /// if that many commands run.
    pub(crate) fn count_command(&self) -> Result<OwnedSemaphorePermit, usize> {
        let permit = self.commands.clone().try_acquire_owned();
        permit.map_err(|_| self.max_commands)
    }

    /// Sets the address of a pod.
    pub(crate) fn set_address(&self, uid: &str, address: Ipv4Addr) {
        self.pods.lock().entry(uid.to_owned()).or_default().address = Some(address);
    }

    /// Adds a started container.
    pub(crate) fn started(&self, uid: &str, name: &str, container: Container) {
        let mut pods = self.pods.lock();
        let pod = pods.entry(uid.to_owned()).or_default();
        pod.containers.insert(name.to_owned(), Arc::new(container));
    }

    /// Removes an ended container.
    pub(crate) fn ended(&self, uid: &str, name: &str) {
        if let Some(pod) = self.pods.lock().get_mut(uid) {
            pod.containers.remove(name);
        }
    }

    /// Removes a pod.
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

    /// Returns the processes of a pod's containers.
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

    /// Returns the init processes of all running containers.
    pub(crate) fn process_ids(&self) -> Vec<ContainerProcess> {
        let pods = self.pods.lock();
        let containers = pods.iter().flat_map(|(uid, pod)| {
            let all = pod.containers.iter();
            all.filter_map(move |(name, container)| {
                Some(ContainerProcess {
                    pod_uid: uid.clone(),
                    name: name.clone(),
                    id: container.process.upgrade()?.id(),
                    cgroup: container.command.cgroup.clone(),
                })
            })
        });
        containers.collect()
    }

    pub(crate) fn address(&self, uid: &str) -> Result<Ipv4Addr, SessionError> {
        let pods = self.pods.lock();
        let found = pods.get(uid).and_then(|pod| pod.address);
        found.ok_or_else(|| {
            SessionError::NotRunning(format!("the pod of uid {uid} does not run on this node"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::max_commands;

    #[test]
    fn commands_of_exec_fit_into_the_limit_of_open_files() {
        for (files, expected) in [
            (None, 2000),
            (Some(1 << 20), 2000),
            (Some(4096), 256),
            (Some(64), 16),
        ] {
            assert_eq!(max_commands(files), expected, "{files:?}");
        }
    }
}
