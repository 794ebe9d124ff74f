//! The objects that the provisioner creates.

use std::{path::Path, time::Duration};

use longshore_client::{Cluster, Error};
use serde_json::{Value, json};

use super::{
    super::{
        facts::{ClaimFacts, ClassFacts},
        names::{DEFAULT_CLASS, PROVISIONED_BY},
    },
    LocalVolumes, PROVISIONER_NAME, folder,
};

/// The name of the default class.
const CLASS: &str = "standard";
/// The delay before the class is created again doubles from the first value to the second.
const INSTALL_DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

impl LocalVolumes {
    /// Creates the StorageClass `standard` and the directory of the volumes unless the directory
    /// exists. If it exists, a missing class was deleted by a user. [`Controllers`] call this when
    /// they start. Call it earlier if claims can be created before then, because a claim gets the
    /// default class when the claim is created.
    ///
    /// # Errors
    /// The class or the directory cannot be created.
    ///
    /// [`Controllers`]: crate::Controllers
    pub async fn install(&self, cluster: &Cluster) -> Result<(), Error> {
        match self.folder.exists() {
            true => Ok(()),
            false => self.install_new(cluster).await,
        }
    }

    /// Like [`LocalVolumes::install`], but for a new cluster whose directory exists.
    ///
    /// # Errors
    /// See [`LocalVolumes::install`].
    pub async fn install_new(&self, cluster: &Cluster) -> Result<(), Error> {
        match cluster.storageclasses().create(&class()).await {
            Err(error) if !error.is_already_exists() => return Err(error),
            _ => {}
        }
        folder::create_parent(&self.folder).map_err(|error| {
            Error::Invalid(format!(
                "cannot create the directory of volumes {}: {error}",
                self.folder.display()
            ))
        })
    }

    /// Tries [`LocalVolumes::install`] again until it succeeds.
    pub(crate) async fn install_later(self, cluster: Cluster) {
        let mut delay = INSTALL_DELAYS.0;
        loop {
            tokio::time::sleep(delay).await;
            match self.install(&cluster).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot create the default storage class; trying again");
                }
            }
            delay = (delay * 2).min(INSTALL_DELAYS.1);
        }
    }
}

/// Returns the default class.
fn class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": {DEFAULT_CLASS[0]: "true"}},
        "provisioner": PROVISIONER_NAME,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    })
}

/// Returns the name of a claim's volume.
pub(crate) fn volume_name(claim: &ClaimFacts) -> String {
    format!("pvc-{}", claim.uid)
}

/// Returns the volume of a claim.
pub(crate) fn volume(
    claim: &ClaimFacts,
    class: &ClassFacts,
    path: &Path,
    nodes: &[String],
) -> Value {
    let mut volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name(claim),
            "annotations": {PROVISIONED_BY: PROVISIONER_NAME},
        },
        "spec": {
            "accessModes": claim.modes,
            "capacity": {"storage": claim.size_text},
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": claim.key.namespace, "name": claim.key.name,
                "uid": claim.uid, "resourceVersion": claim.version,
            },
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes},
            ]}]}},
            "persistentVolumeReclaimPolicy": class.reclaim_policy,
            "storageClassName": class.name,
            "volumeMode": claim.volume_mode,
        },
    });
    if !class.mount_options.is_empty() {
        volume["spec"]["mountOptions"] = json!(class.mount_options);
    }
    if !claim.attributes_class.is_empty() {
        volume["spec"]["volumeAttributesClassName"] = claim.attributes_class.as_str().into();
    }
    volume
}
