//! Prepares a pod's volumes as directories on the machine (api-semantics rule
//! 37).

mod error;
mod files;
mod path;
mod publish;
mod trust;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, Pod, Volume};

use crate::{
    access::{AccountFiles, ROOT_CA, is_account_volume},
    certificates::Certificates,
    claims::{ClaimSource, ClaimVolume, ClaimVolumes},
    downward,
    lookup::Lookup,
    security::Owner,
    tokens::Issued,
};
pub(crate) use error::VolumeError;
pub(crate) use path::sub_path;
use path::{give_to_group, host_path, local_path, make_folder, share_with_group};
use publish::publish;

/// A volume that is ready to be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// The directory (or file, for a hostPath) on the machine.
    pub(crate) path: PathBuf,
    /// True if containers may never write to the volume.
    pub(crate) read_only: bool,
    /// True if the agent wrote the volume's files, which are reached through the agent's links.
    pub(crate) is_published: bool,
}

/// Returns the names of the ConfigMaps and Secrets that the pod's volumes need. Omits the ConfigMap
/// of the certificate next to the token of the service account, which the node already has.
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
            let is_known = |name: &str| name == ROOT_CA && is_account_volume(volume);
            let maps = source.config_map.iter().map(|source| &source.name);
            config_maps.extend(maps.filter(|name| !is_known(name)).cloned());
            secrets.extend(source.secret.iter().map(|source| source.name.clone()));
        }
    }
    (config_maps, secrets)
}

/// Returns true if a volume contains certificates of ClusterTrustBundles.
pub(crate) fn contain_trust_bundles(pod: &Pod) -> bool {
    let spec = pod.spec.iter();
    let mut sources = spec
        .flat_map(|spec| spec.volumes.iter().flatten())
        .filter_map(|volume| volume.projected.as_ref())
        .flat_map(|projected| projected.sources.iter().flatten());
    sources.any(|source| source.cluster_trust_bundle.is_some())
}

/// Returns true if a volume contains metadata of the pod that can change.
pub(crate) fn contain_metadata(pod: &Pod) -> bool {
    let spec = pod.spec.iter();
    let mut volumes = spec.flat_map(|spec| spec.volumes.iter().flatten());
    volumes.any(|volume| {
        let own = volume.downward_api.iter().flat_map(|source| &source.items);
        let projected = volume.projected.iter();
        let sources = projected.flat_map(|projected| projected.sources.iter().flatten());
        let sources = sources.filter_map(|source| source.downward_api.as_ref());
        let mut items = own
            .chain(sources.flat_map(|source| &source.items))
            .flatten();
        items.any(can_change)
    })
}

/// Returns true if a file of the downward API contains labels or annotations.
fn can_change(item: &DownwardAPIVolumeFile) -> bool {
    item.field_ref.as_ref().is_some_and(|field| {
        let path = &field.field_path;
        path.starts_with("metadata.labels") || path.starts_with("metadata.annotations")
    })
}

/// Creates or updates all volumes of a pod in `folder`.
pub(crate) fn prepare(
    inputs: &Inputs<'_>,
    folder: &Path,
) -> Result<BTreeMap<String, Prepared>, VolumeError> {
    let mut prepared = BTreeMap::new();
    let spec = inputs.pod.spec.iter();
    for volume in spec.flat_map(|spec| spec.volumes.iter().flatten()) {
        let is_absent = inputs.account == AccountFiles::Absent;
        if is_absent && is_account_volume(volume) {
            continue;
        }
        prepared.insert(volume.name.clone(), inputs.volume(volume, folder)?);
    }
    Ok(prepared)
}

/// The inputs for preparing volumes.
pub(crate) struct Inputs<'a> {
    pub(crate) pod: &'a Pod,
    /// ConfigMaps and Secrets.
    pub(crate) lookup: &'a dyn Lookup,
    pub(crate) pod_values: &'a downward::PodValues,
    /// Tokens of the pod's service account.
    pub(crate) tokens: &'a Issued,
    /// The files of its service account that the pod gets.
    pub(crate) account: AccountFiles,
    /// Certificates of the pod.
    pub(crate) certificates: &'a Certificates,
    /// The volumes of the pod's claims.
    pub(crate) claims: &'a ClaimVolumes,
    /// The owner of the files.
    pub(crate) owner: Owner,
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
        if let Some(claim) = self.claims.get(name) {
            return self.claim(name, claim);
        }
        let path = folder.join(name);
        if volume.empty_dir.is_some() {
            // The mode of an existing directory belongs to the containers.
            if !path.is_dir() {
                make_folder(&path, 0o777).map_err(system)?;
                if let Some(group) = self.owner.group {
                    give_to_group(&path, group).map_err(system)?;
                }
            }
            return Ok(Prepared {
                path,
                read_only: false,
                is_published: false,
            });
        }
        let files = self.files(volume)?;
        publish(&path, &files, self.owner.group).map_err(system)?;
        Ok(Prepared {
            path,
            read_only: true,
            is_published: true,
        })
    }

    /// Prepares the volume of a claim.
    fn claim(&self, volume: &str, claim: &ClaimVolume) -> Result<Prepared, VolumeError> {
        let prepared = match &claim.source {
            ClaimSource::Local(path) => {
                let prepared = local_path(&claim.name, path)?;
                if let Some(group) = self.owner.group {
                    share_with_group(&prepared.path, group).map_err(|source| {
                        VolumeError::System {
                            volume: claim.name.clone(),
                            source,
                        }
                    })?;
                }
                prepared
            }
            // As in Kubernetes, the fsGroup has no effect on a hostPath.
            ClaimSource::HostPath(path, kind) => host_path(&claim.name, path, kind)?,
            ClaimSource::Unsupported => {
                return Err(VolumeError::UnsupportedClaim {
                    volume: volume.to_owned(),
                    name: claim.name.clone(),
                });
            }
        };
        Ok(Prepared {
            read_only: claim.read_only,
            ..prepared
        })
    }
}

#[cfg(test)]
mod tests;
