//! PersistentVolumes and the claims to them.

use super::{Resources, open_enum};
use crate::{
    error::Result,
    item::Item,
    kinds::{PersistentVolume, PersistentVolumeClaim},
};

open_enum! {
    /// How far a claim has come.
    ClaimPhase {
        /// It has no volume yet.
        Pending = "Pending",
        /// It has its volume.
        Bound = "Bound",
        /// Its volume is gone, and the data with it.
        Lost = "Lost",
    }
}

open_enum! {
    /// How far a volume has come.
    VolumePhase {
        /// Not known yet.
        Pending = "Pending",
        /// Free.
        Available = "Available",
        /// A claim has it.
        Bound = "Bound",
        /// Its claim is gone, its data may still be there.
        Released = "Released",
        /// It could not be made free again.
        Failed = "Failed",
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// use longshore_client::typed::ClaimPhase;
/// use serde_json::json;
///
/// let claims = cluster.persistentvolumeclaims().in_namespace("default")?;
/// let claim = claims.create(&json!({
///     "metadata": {"name": "data"},
///     "spec": {
///         "accessModes": ["ReadWriteOnce"],
///         "resources": {"requests": {"storage": "1Gi"}},
///     },
/// })).await?;
/// assert_eq!((claim.phase()?, claim.volume_name()?), (ClaimPhase::Pending, None));
/// assert!(claim.capacity().is_err());
/// # claim.patch(&Patch::merge(json!({"spec": {"volumeName": "disk-1"}}))).await?;
/// # let status = json!({"status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}});
/// # claim.patch_status(&Patch::merge(status)).await?;
///
/// // When it has its volume, which may hold more:
/// let claim = claim.fetch().await?;
/// assert_eq!(claim.phase()?, ClaimPhase::Bound);
/// assert_eq!(claim.volume_name()?.as_deref(), Some("disk-1"));
/// let capacity = claim.capacity()?;
/// assert_eq!(capacity.get("storage").map(ToString::to_string).as_deref(), Some("2Gi"));
/// # Ok(()) });
/// ```
impl Item<PersistentVolumeClaim> {
    /// How far it has come.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn phase(&self) -> Result<ClaimPhase> {
        self.status_field(&["phase"])
    }

    /// What its volume holds.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) while it has none.
    pub fn capacity(&self) -> Result<Resources> {
        self.resources(&["status", "capacity"])
    }

    /// The name of its volume; `None` while it has none.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no text.
    pub fn volume_name(&self) -> Result<Option<String>> {
        let name: Option<String> = self.field(&["spec", "volumeName"])?;
        Ok(name.filter(|name| !name.is_empty()))
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::typed::VolumePhase;
/// use serde_json::json;
///
/// let volume = cluster.persistentvolumes().create(&json!({
///     "metadata": {"name": "disk-1"},
///     "spec": {
///         "capacity": {"storage": "2Gi"},
///         "accessModes": ["ReadWriteOnce"],
///         "hostPath": {"path": "/srv/disk-1"},
///     },
/// })).await?;
/// assert_eq!(volume.phase()?, VolumePhase::Pending);
/// let capacity = volume.capacity()?;
/// assert_eq!(capacity.get("storage").map(|amount| amount.value()), Some(2147483648.0));
/// # Ok(()) });
/// ```
impl Item<PersistentVolume> {
    /// How far it has come.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn phase(&self) -> Result<VolumePhase> {
        self.status_field(&["phase"])
    }

    /// What it holds.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it does not say so.
    pub fn capacity(&self) -> Result<Resources> {
        self.resources(&["spec", "capacity"])
    }
}
