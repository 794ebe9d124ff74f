//! Keeps the logs of a Job's pods when the pods are deleted, until the Job is removed.
//!
//! A Job deletes the pods of its other tasks when one fails, and all of them when it is suspended
//! or reaches its deadline, so the logs would be missing when they are needed most. When such a pod
//! arrives, the node writes a record of it next to its logs ([`KeptPod`]), so that nothing is lost
//! if the agent is killed while the pod is deleted.
//!
//! `index` has the pods, `keeper` removes logs whose owner is gone, and `limit` bounds the disk
//! space.

mod index;
mod keeper;
mod limit;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use longshore_model::{ObjectMeta, meta::OwnerReference};
use serde::{Deserialize, Serialize};

pub(crate) use index::Index;
pub use index::kept_log_bytes;
pub(crate) use keeper::keep;
pub use limit::KEPT_LOGS_LIMIT;

/// The file in the folder of a pod's logs. The other entries are named after containers, whose
/// names have no dots.
const FILE: &str = "pod.json";
/// Annotations with longer values, over the limit for labels, are not recorded.
const LONGEST_ANNOTATION: usize = 63;
/// The maximum number of labels and of annotations that are recorded.
const MOST_ENTRIES: usize = 64;

/// A pod whose logs are kept when it is deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeptPod {
    /// The pod's name, namespace, UID, creation time, labels, short annotations, and controller.
    pub(super) metadata: ObjectMeta,
    /// The pod's containers, in the order of the spec.
    pub(super) containers: Vec<String>,
    /// The object whose removal also removes the logs: the controller of the pod, or the
    /// controller of that object.
    pub(super) owner: OwnerReference,
    /// The time of the deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deleted: Option<Timestamp>,
    /// The reason why the logs were removed although the owner exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) removed: Option<String>,
}

impl KeptPod {
    /// Returns the record of a pod, or `None` if no Job controls it. Other controllers replace
    /// their pods without limit.
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        let metadata = &pod.metadata;
        let owners = metadata.owner_references.iter().flatten();
        let controller = owners
            .into_iter()
            .find(|owner| owner.controller == Some(true) && owner.kind == "Job")?;
        let controller = OwnerReference {
            api_version: controller.api_version.clone(),
            kind: controller.kind.clone(),
            name: controller.name.clone(),
            uid: controller.uid.clone(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        let spec = pod.spec.as_ref()?;
        let init = spec.init_containers.iter().flatten();
        let containers = init.chain(&spec.containers);
        let labels = metadata.labels.iter().flatten();
        let annotations = metadata.annotations.iter().flatten();
        let short = annotations.filter(|(_, value)| value.len() <= LONGEST_ANNOTATION);
        let own = |(key, value): (&String, &String)| (key.clone(), value.clone());
        Some(Self {
            metadata: ObjectMeta {
                name: metadata.name.clone()?,
                namespace: metadata.namespace.clone(),
                uid: metadata.uid.clone()?,
                creation_timestamp: metadata.creation_timestamp.as_ref().map(|time| time.0),
                labels: labels.take(MOST_ENTRIES).map(own).collect(),
                annotations: short.take(MOST_ENTRIES).map(own).collect(),
                owner_references: vec![controller.clone()],
                ..ObjectMeta::default()
            },
            containers: containers.map(|container| container.name.clone()).collect(),
            owner: controller,
            deleted: None,
            removed: None,
        })
    }

    pub(super) fn uid(&self) -> &str {
        &self.metadata.uid
    }

    pub(super) fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Reads the record in a folder of logs. Returns `None` if the record is missing or cannot be
    /// read.
    fn read(folder: &Path) -> Option<Self> {
        let text = fs::read(folder.join(FILE)).ok()?;
        let uid = folder.file_name()?.to_str()?;
        let read: Self = serde_json::from_slice(&text)
            .inspect_err(|error| tracing::warn!(uid, %error, "the record of a pod is damaged"))
            .ok()?;
        (read.uid() == uid).then_some(read)
    }

    /// Writes the record to a folder of logs, which is created if it is missing.
    fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let new = folder.join(format!("{FILE}.new"));
        let text = serde_json::to_vec(self)?;
        let written = File::create(&new).and_then(|mut file| file.write_all(&text));
        if let Err(error) = written {
            // A full disk may contain a part of the record.
            let _ = fs::remove_file(new);
            return Err(error);
        }
        fs::rename(new, folder.join(FILE))
    }
}
