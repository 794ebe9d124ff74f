//! The provisioner of the class `standard`, which makes a directory on the machine for each claim,
//! and removes the directory with the volume.

mod controller;
mod folder;
mod objects;
mod plan;

use std::path::PathBuf;

pub(crate) use controller::run;

/// The provisioner's name in classes and annotations.
pub(crate) const PROVISIONER_NAME: &str = "longshore.dev/local-path";

/// The location of the volumes that the controllers make for claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalVolumes {
    /// The directory that contains the volumes' directories. If it is missing, it is created with
    /// permissions for its owner only, and the StorageClass `standard` is also created.
    pub folder: PathBuf,
    /// The nodes of this machine, all of which can use the volumes.
    pub nodes: Vec<String>,
}
