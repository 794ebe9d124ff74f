//! The parts of a folder's `longshore.toml` that the command line needs.

use std::path::Path;

use longshore::launcher::{Settings, config::ClusterSettings};

use crate::{
    env,
    error::{Error, Kind, Result},
};

/// Reads the folder's settings, or default ones if it has none.
pub(crate) fn load(folder: &Path) -> Result<Settings> {
    Settings::load(folder).map_err(|error| Error::from_source(Kind::Usage, &error))
}

/// The cluster in the folder's settings.
pub(crate) fn cluster(settings: &Settings, folder: &Path) -> ClusterSettings {
    ClusterSettings::of_folder(settings, folder, env::home().as_deref())
}

/// The cluster in the current folder's settings.
pub(crate) fn here() -> Result<ClusterSettings> {
    let folder = Path::new(".");
    Ok(cluster(&load(folder)?, folder))
}
