//! The pods whose logs are kept after their deletion, in memory and on disk.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use longshore_files::{DiskLimit, free_bytes};
use longshore_model::meta::OwnerReference;
use longshore_node_api::{ContainerLogs, InstanceLog, LogOwner, PodLogs};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    super::segments,
    KeptPod,
    limit::{self, KEPT_LOGS_LIMIT, Size},
};
use crate::data_folder;

/// The state of a pod.
#[derive(Debug)]
struct Known {
    pod: KeptPod,
    /// True if the record on disk is current.
    is_written: bool,
    /// True if `owner` is final, because the controller of the pod's controller is known.
    is_resolved: bool,
    /// The size of the logs. Set after the pod was deleted and its owner was found to exist.
    bytes: Option<u64>,
}

/// The pods of Jobs that this node has or had.
#[derive(Debug)]
pub(crate) struct Index {
    /// The folder of all logs.
    folder: PathBuf,
    /// The file with the limit of the disk space.
    limit_file: Option<PathBuf>,
    pods: Mutex<HashMap<String, Known>>,
    /// Notified when the keeper has something to do.
    changed: Notify,
}

impl Index {
    pub(in crate::logs) fn new(folder: PathBuf, limit_file: Option<PathBuf>) -> Self {
        Self {
            folder,
            limit_file,
            pods: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn folder_of(&self, uid: &str) -> PathBuf {
        self.folder.join(uid)
    }

    /// Reads the record of a pod from an earlier agent. Returns `false` if nothing of the pod must
    /// be kept. `is_present` is true if the Pod object exists.
    pub(in crate::logs) fn load(&self, uid: &str, is_present: bool) -> bool {
        let Some(mut pod) = KeptPod::read(&self.folder_of(uid)) else {
            return false;
        };
        if !is_present && pod.removed.is_none() && !has_logs(&self.folder_of(uid)) {
            return false;
        }
        let deleted = match is_present {
            true => None,
            false => pod.deleted.or(Some(Timestamp::now())),
        };
        let is_written = deleted == pod.deleted;
        pod.deleted = deleted;
        let known = Known {
            pod,
            is_written,
            is_resolved: false,
            bytes: None,
        };
        self.pods.lock().insert(uid.to_owned(), known);
        self.changed.notify_one();
        true
    }

    /// Records a pod of this node.
    pub(in crate::logs) fn add(&self, mut pod: KeptPod) {
        let uid = pod.uid().to_owned();
        let folder = self.folder_of(&uid);
        let mut pods = self.pods.lock();
        let before = pods.get(&uid);
        if let Some(before) = before {
            // The record has the owner of the pod's controller, which the pod lacks.
            pod.owner = before.pod.owner.clone();
        }
        let mut is_written = before.is_some_and(|known| known.is_written && known.pod == pod);
        if !is_written {
            is_written = pod.write(&folder).inspect_err(not_recorded(&uid)).is_ok();
        }
        let known = Known {
            pod,
            is_written,
            is_resolved: false,
            bytes: None,
        };
        pods.insert(uid, known);
        drop(pods);
        self.changed.notify_one();
    }

    /// Records that a pod was deleted. Returns `false` if nothing of the pod must be kept.
    pub(in crate::logs) fn deleted(&self, uid: &str) -> bool {
        let folder = self.folder_of(uid);
        let mut pods = self.pods.lock();
        let Some(known) = pods.get_mut(uid) else {
            return false;
        };
        if !has_logs(&folder) {
            pods.remove(uid);
            return false;
        }
        known.pod.deleted.get_or_insert_with(Timestamp::now);
        // The keeper writes the record unless the logs are removed with their owner.
        known.is_written = false;
        drop(pods);
        self.changed.notify_one();
        true
    }

    /// Removes the logs of a deleted pod.
    fn remove(&self, uid: &str) {
        self.pods.lock().remove(uid);
        remove_folder(&self.folder_of(uid));
    }

    /// Returns the record of a pod with this namespace and name.
    pub(in crate::logs) fn find(&self, uid: &str, namespace: &str, name: &str) -> Option<KeptPod> {
        let pods = self.pods.lock();
        let pod = &pods.get(uid)?.pod;
        let is_same = pod.namespace() == namespace && pod.metadata.name == name;
        is_same.then(|| pod.clone())
    }

    /// Lists the pods of a namespace and their logs.
    pub(in crate::logs) fn list(&self, namespace: &str) -> Vec<PodLogs> {
        let pods = self.pods.lock();
        let of_namespace = pods.values().map(|known| &known.pod);
        let of_namespace = of_namespace.filter(|pod| pod.namespace() == namespace);
        let found: Vec<KeptPod> = of_namespace.cloned().collect();
        // The files are read without the lock.
        drop(pods);
        let described = found.into_iter().map(|pod| {
            let mut containers = containers(&self.folder_of(pod.uid()));
            let order = |name: &str| pod.containers.iter().position(|known| known == name);
            containers.sort_by_key(|container| order(&container.name));
            describe(pod, containers)
        });
        described.collect()
    }

    /// Waits until the keeper has something to do.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the Jobs that control pods whose final owner is unknown.
    pub(super) fn unresolved(&self) -> Vec<(String, OwnerReference)> {
        let pods = self.pods.lock();
        let unresolved = pods.values().filter(|known| !known.is_resolved);
        let mut found: Vec<(String, OwnerReference)> = unresolved
            .filter_map(|known| {
                let controller = known.pod.metadata.controller()?.clone();
                Some((known.pod.namespace().to_owned(), controller))
            })
            .collect();
        found.sort_by(|a, b| a.1.uid.cmp(&b.1.uid));
        found.dedup_by(|a, b| a.1.uid == b.1.uid);
        found
    }

    /// Sets the final owner of the pods of a Job. `None` stands for the Job itself, or for an
    /// unknown owner.
    pub(super) fn resolve(&self, job: &str, owner: Option<&OwnerReference>) {
        for known in self.pods.lock().values_mut() {
            let controller = known.pod.metadata.controller();
            if controller.is_none_or(|controller| controller.uid != job) {
                continue;
            }
            known.is_resolved = true;
            if let Some(owner) = owner.filter(|owner| **owner != known.pod.owner) {
                known.pod.owner = owner.clone();
                known.is_written = false;
            }
        }
    }

    /// Returns each owner of the logs of deleted pods once, with its namespace. If `new` is true,
    /// returns only the owners of pods whose owner has not been found to exist.
    pub(super) fn owners(&self, new: bool) -> Vec<(String, OwnerReference)> {
        let pods = self.pods.lock();
        let deleted = pods.values().filter(|known| known.pod.deleted.is_some());
        let mut owners: Vec<(String, OwnerReference)> = deleted
            .filter(|known| !new || known.bytes.is_none())
            .map(|known| (known.pod.namespace().to_owned(), known.pod.owner.clone()))
            .collect();
        owners.sort_by(|a, b| a.1.uid.cmp(&b.1.uid));
        owners.dedup_by(|a, b| a.1.uid == b.1.uid);
        owners
    }

    /// Removes the logs of deleted pods whose owner with this uid was removed.
    pub(super) fn owner_removed(&self, owner: &str) {
        for uid in self.deleted_of(owner, false) {
            self.remove(&uid);
        }
    }

    /// Measures the logs of deleted pods whose owner with this uid exists.
    pub(super) fn owner_exists(&self, owner: &str) {
        for uid in self.deleted_of(owner, true) {
            let bytes = size(&self.folder_of(&uid));
            if let Some(known) = self.pods.lock().get_mut(&uid) {
                known.bytes = Some(bytes);
            }
        }
    }

    fn deleted_of(&self, owner: &str, new: bool) -> Vec<String> {
        let pods = self.pods.lock();
        let of_owner = pods.values().filter(|known| {
            let is_deleted = known.pod.deleted.is_some() && known.pod.owner.uid == owner;
            is_deleted && (!new || known.bytes.is_none())
        });
        of_owner.map(|known| known.pod.uid().to_owned()).collect()
    }

    /// Writes the records that could not be written before.
    pub(super) fn write_again(&self) {
        let mut pods = self.pods.lock();
        for (uid, known) in pods.iter_mut().filter(|(_, known)| !known.is_written) {
            let written = known.pod.write(&self.folder_of(uid));
            known.is_written = written.is_ok();
        }
    }

    /// Removes logs and records over the limits.
    pub(super) fn enforce_limits(&self) {
        // The limit may have changed.
        let configured = self.limit_file.as_deref().and_then(DiskLimit::saved);
        let configured = configured.unwrap_or(KEPT_LOGS_LIMIT);
        let pods = self.pods.lock();
        let sizes = pods.values().filter_map(|known| {
            Some(Size {
                deleted: known.pod.deleted?,
                uid: known.pod.uid().to_owned(),
                bytes: known.bytes?,
            })
        });
        let excess = limit::excess(sizes.collect(), configured, free_bytes(&self.folder));
        drop(pods);
        for uid in &excess.pods {
            tracing::warn!(
                uid,
                "removing the logs of a deleted pod: there are too many"
            );
            self.remove(uid);
        }
        for uid in &excess.logs {
            self.remove_logs(uid);
        }
    }

    /// Removes the logs of a deleted pod, but not its record.
    pub(super) fn remove_logs(&self, uid: &str) {
        let folder = self.folder_of(uid);
        let mut pods = self.pods.lock();
        let Some(known) = pods.get_mut(uid) else {
            return;
        };
        tracing::warn!(
            uid,
            pod = known.pod.metadata.name,
            "removing the logs of a deleted pod to limit the disk space"
        );
        let why = "they were removed to limit the disk space of the logs of deleted pods";
        known.pod.removed = Some(why.to_owned());
        known.bytes = Some(0);
        // Removing files frees space for the record.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove_folder(&entry.path());
            }
        }
        known.is_written = known.pod.write(&folder).is_ok();
    }
}

fn not_recorded(uid: &str) -> impl FnOnce(&io::Error) {
    move |error| {
        tracing::warn!(uid, %error, "cannot record a pod whose logs are kept; trying again");
    }
}

fn describe(pod: KeptPod, containers: Vec<ContainerLogs>) -> PodLogs {
    let of = |owner: OwnerReference| LogOwner {
        api_version: owner.api_version,
        kind: owner.kind,
        name: owner.name,
        uid: owner.uid,
    };
    let controller = pod.metadata.controller().cloned().unwrap_or_default();
    let metadata = pod.metadata;
    PodLogs {
        namespace: metadata.namespace.unwrap_or_default(),
        pod: metadata.name,
        uid: metadata.uid,
        created: metadata.creation_timestamp,
        labels: metadata.labels,
        annotations: metadata.annotations,
        controller: of(controller),
        owner: of(pod.owner),
        deleted: pod.deleted,
        removed: pod.removed,
        containers,
    }
}

/// Returns the containers with logs in a pod's folder.
fn containers(folder: &Path) -> Vec<ContainerLogs> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<ContainerLogs> = entries
        .filter_map(|entry| {
            let instances = instances(&entry.path());
            let name = entry.file_name().into_string().ok()?;
            (!instances.is_empty()).then_some(ContainerLogs { name, instances })
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn instances(folder: &Path) -> Vec<InstanceLog> {
    let mut files = segments::files(folder);
    // Keeps the first file of each run.
    files.dedup_by_key(|(restart, _)| *restart);
    let instance = |(restart, first): (u32, u32)| InstanceLog {
        restart,
        is_cut: first > 0,
    };
    files.into_iter().map(instance).collect()
}

fn has_logs(folder: &Path) -> bool {
    !containers(folder).is_empty()
}

/// Returns the size in bytes of the logs of deleted pods in the data folder of an agent.
#[must_use]
pub fn kept_log_bytes(data: &Path) -> u64 {
    let entries = fs::read_dir(data.join(data_folder::LOGS));
    let folders = entries.into_iter().flatten().flatten();
    let deleted = folders.map(|entry| entry.path()).filter(|folder| {
        let pod = KeptPod::read(folder);
        pod.is_some_and(|pod| pod.deleted.is_some())
    });
    deleted.map(|folder| size(&folder)).sum()
}

/// Returns the size of a pod's logs in bytes.
fn size(folder: &Path) -> u64 {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries(folder).flat_map(|container| entries(&container.path()));
    let sizes = files.filter_map(|file| Some(file.metadata().ok()?.len()));
    sizes.fold(0, u64::saturating_add)
}

fn remove_folder(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(?folder, %error, "cannot remove the logs of a deleted pod");
    }
}
