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
