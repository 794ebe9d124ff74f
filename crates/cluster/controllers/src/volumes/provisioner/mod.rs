//! The provisioner of the class `standard`: makes a directory of the machine for
//! each claim, and removes it with the volume.

mod controller;
mod folder;
mod objects;
mod plan;

use std::path::PathBuf;

pub(crate) use controller::run;

/// The provisioner's name in classes and annotations.
pub(crate) const PROVISIONER_NAME: &str = "longshore.dev/local-path";

/// Where the controllers make volumes for claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalVolumes {
    /// The directory of the volumes' directories. It is created if it is missing,
    /// with permissions for its owner only. If it is missing, the StorageClass
    /// `standard` is also created.
    pub folder: PathBuf,
    /// The nodes of this machine: a volume can be used on each.
    pub nodes: Vec<String>,
}
