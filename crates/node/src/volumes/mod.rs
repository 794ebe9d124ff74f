//! Prepares a pod's volumes as folders on the machine (api-semantics rule 37).

mod error;
mod files;
mod path;
mod publish;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{Pod, Volume};

use crate::{downward, environment::Lookup};
pub(crate) use error::VolumeError;
pub(crate) use path::sub_path;
use path::{host_path, make_folder};
pub(crate) use publish::{FileToBe, Files, publish};

/// A volume, ready to be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// The folder (or file, of a hostPath) on the machine.
    pub(crate) path: PathBuf,
    /// Whether containers may never write to it.
    pub(crate) read_only: bool,
}

/// The names of the ConfigMaps and of the Secrets that the pod's volumes need.
pub(crate) fn references(pod: &Pod) -> (Vec<String>, Vec<String>) {
    let (mut config_maps, mut secrets) = (Vec::new(), Vec::new());
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    for volume in volumes {
        config_maps.extend(volume.config_map.iter().map(|source| source.name.clone()));
        secrets.extend(
            volume
                .secret
                .iter()
                .filter_map(|source| source.secret_name.clone()),
        );
        let sources = volume
            .projected
            .iter()
            .flat_map(|projected| &projected.sources);
        for source in sources.flatten() {
            config_maps.extend(source.config_map.iter().map(|source| source.name.clone()));
            secrets.extend(source.secret.iter().map(|source| source.name.clone()));
        }
    }
    (config_maps, secrets)
}

/// Makes or updates all volumes of a pod in `folder`.
pub(crate) fn prepare(
    pod: &Pod,
    folder: &Path,
    lookup: &dyn Lookup,
    facts: &downward::Facts,
) -> Result<BTreeMap<String, Prepared>, VolumeError> {
    let inputs = Inputs { pod, lookup, facts };
    let mut prepared = BTreeMap::new();
    for volume in pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten())
    {
        prepared.insert(volume.name.clone(), inputs.volume(volume, folder)?);
    }
    Ok(prepared)
}

struct Inputs<'a> {
    pod: &'a Pod,
    lookup: &'a dyn Lookup,
    facts: &'a downward::Facts,
}

impl Inputs<'_> {
    fn volume(&self, volume: &Volume, folder: &Path) -> Result<Prepared, VolumeError> {
        let name = &volume.name;
        let system = |source| VolumeError::System {
            volume: name.clone(),
            source,
        };
        if let Some(source) = &volume.host_path {
            let kind = source.type_.as_deref().unwrap_or_default();
            return host_path(name, &source.path, kind);
        }
        let path = folder.join(name);
        if volume.empty_dir.is_some() {
            make_folder(&path, 0o777).map_err(system)?;
            return Ok(Prepared {
                path,
                read_only: false,
            });
        }
        let files = self.files(volume)?;
        publish(&path, &files).map_err(system)?;
        Ok(Prepared {
            path,
            read_only: true,
        })
    }
}

#[cfg(test)]
mod tests;
