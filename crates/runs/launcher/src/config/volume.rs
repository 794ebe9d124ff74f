//! Volumes and their mounts.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    str::FromStr,
};

use longshore_client::k8s_openapi::{
    api::core::v1 as core, apimachinery::pkg::api::resource::Quantity,
};
use longshore_diagnosis::names;
use serde::Deserialize;

use super::{
    ConfigError, Located, Text, code_path,
    values::{Unit, invalid, invalid_at, quantity, subdomain},
};

/// A volume and its mount path. Exactly one of claim, secret, `config_map`, host and empty
/// is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Volume {
    /// The mount path.
    pub path: Located<PathBuf>,
    /// The name of a PersistentVolumeClaim.
    pub claim: Option<Text>,
    /// The name of a Secret.
    pub secret: Option<Text>,
    /// The name of a ConfigMap.
    pub config_map: Option<Text>,
    /// A folder of the node.
    pub host: Option<Located<PathBuf>>,
    /// The size limit of an empty folder; an empty string for no limit.
    pub empty: Option<Text>,
    /// A folder within the volume.
    pub sub_path: Option<String>,
    /// True if the volume is mounted read-only.
    pub read_only: bool,
}

impl Volume {
    /// The volume with its host folder, if it is relative, resolved against `folder`.
    pub(super) fn below(&self, folder: Option<&Path>) -> Self {
        let mut volume = self.clone();
        if let (Some(host), Some(folder)) = (&mut volume.host, folder)
            && host.is_relative()
        {
            *host = host.replaced(without_parents(&folder.join(&**host)));
        }
        volume
    }
}

/// The notation of `--volume`: `claim:datasets:/data:ro`, `empty:10Gi:/scratch`,
/// `empty::/scratch`.
///
/// ```
/// use longshore_launcher::config::Volume;
///
/// let volume: Volume = "claim:datasets:/data:ro".parse()?;
/// assert!(volume.read_only);
/// # Ok::<(), longshore_launcher::config::ConfigError>(())
/// ```
impl FromStr for Volume {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let refuse = || {
            let rule = "write KIND:NAME:PATH or KIND:NAME:PATH:ro, with one of claim, secret, config-map, host, empty";
            invalid("--volume", text, rule)
        };
        let parts: Vec<&str> = text.split(':').collect();
        let (kind, name, path, read_only) = match *parts.as_slice() {
            [kind, name, path] => (kind, name, path, false),
            [kind, name, path, "ro"] => (kind, name, path, true),
            _ => return Err(refuse()),
        };
        let mut volume = Self {
            path: PathBuf::from(path).into(),
            read_only,
            ..Self::default()
        };
        let named = Some(Text::from(name));
        match kind {
            "empty" => volume.empty = named,
            _ if name.is_empty() => return Err(refuse()),
            "claim" => volume.claim = named,
            "secret" => volume.secret = named,
            "config-map" => volume.config_map = named,
            "host" => volume.host = Some(PathBuf::from(name).into()),
            _ => return Err(refuse()),
        }
        Ok(volume)
    }
}

/// The path without `.` and `..`, resolved lexically.
fn without_parents(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

/// Volumes with their mounts, and links to them.
#[derive(Debug, Default)]
pub(super) struct Mounted {
    pub(super) volumes: Vec<(core::Volume, core::VolumeMount)>,
    /// Paths in the folder of the code, and the paths of the mounts.
    pub(super) links: BTreeMap<String, String>,
}

/// Volumes with their mounts. The last mount at a path applies. A volume in the folder of the code
/// is mounted elsewhere, because this folder is created after the mounts.
pub(super) fn to_kubernetes(
    volumes: impl IntoIterator<Item = Volume>,
) -> Result<Mounted, ConfigError> {
    let mut by_path: BTreeMap<String, Volume> = BTreeMap::new();
    for volume in volumes {
        let path = volume.path.to_string_lossy();
        let path = path.trim_end_matches('/').to_owned();
        let refuse = |rule: &str| {
            let shown = volume.path.replaced(volume.path.to_string_lossy());
            invalid_at("volumes path", &shown, rule)
        };
        if let Some(link) = code_path::in_code(&path).map_err(refuse)? {
            by_path.insert(link, volume);
            continue;
        }
        let rule = if path.split('/').any(|part| part == "..") {
            code_path::RULE
        } else if path == names::HOME || path.starts_with(&format!("{}/", names::HOME)) {
            "/longshore is reserved for the run's own files: choose another path"
        } else {
            by_path.insert(path, volume);
            continue;
        };
        return Err(invalid_at(
            "volumes path",
            &volume.path.replaced(path),
            rule,
        ));
    }
    let mut mounted = Mounted::default();
    for (index, (path, volume)) in (0..).zip(&by_path) {
        let place = match path.starts_with('/') {
            true => path.clone(),
            false => format!("{}/{index}", names::VOLUMES_DIR),
        };
        mounted.volumes.push(mount(index, &place, volume)?);
        if !path.starts_with('/') {
            mounted.links.insert(path.clone(), place);
        }
    }
    Ok(mounted)
}

fn mount(
    index: usize,
    path: &str,
    volume: &Volume,
) -> Result<(core::Volume, core::VolumeMount), ConfigError> {
    let mut planned = core::Volume {
        name: format!("volume-{index}"),
        ..core::Volume::default()
    };
    if let Some(claim) = &volume.claim {
        subdomain("claim", claim)?;
        planned.persistent_volume_claim = Some(core::PersistentVolumeClaimVolumeSource {
            claim_name: claim.to_string(),
            ..core::PersistentVolumeClaimVolumeSource::default()
        });
    }
    if let Some(secret) = &volume.secret {
        subdomain("secret", secret)?;
        planned.secret = Some(core::SecretVolumeSource {
            secret_name: Some(secret.to_string()),
            ..core::SecretVolumeSource::default()
        });
    }
    if let Some(map) = &volume.config_map {
        subdomain("config_map", map)?;
        planned.config_map = Some(core::ConfigMapVolumeSource {
            name: map.to_string(),
            ..core::ConfigMapVolumeSource::default()
        });
    }
    if let Some(host) = &volume.host {
        let has_parent = host.components().any(|part| part == Component::ParentDir);
        if host.is_relative() || has_parent {
            let rule = "give the absolute path of a folder on the nodes, without `..`; a relative path works only on the embedded cluster";
            let shown = host.replaced(host.to_string_lossy());
            return Err(invalid_at("volumes host", &shown, rule));
        }
        let path = host.to_str().ok_or_else(|| {
            let shown = host.replaced(host.to_string_lossy());
            invalid_at("volumes host", &shown, "use a path that is valid UTF-8")
        })?;
        planned.host_path = Some(core::HostPathVolumeSource {
            path: path.to_owned(),
            type_: None,
        });
    }
    if let Some(size) = &volume.empty {
        let limit = match size.as_str() {
            "" => None,
            _ => Some(Quantity(quantity("empty", size, Unit::Storage)?.to_owned())),
        };
        planned.empty_dir = Some(core::EmptyDirVolumeSource {
            size_limit: limit,
            ..core::EmptyDirVolumeSource::default()
        });
    }
    let is_set = [
        volume.claim.is_some(),
        volume.secret.is_some(),
        volume.config_map.is_some(),
        volume.host.is_some(),
        volume.empty.is_some(),
    ];
    if is_set.into_iter().filter(|is_set| *is_set).count() != 1 {
        let rule = "set exactly one of claim, secret, config_map, host, empty";
        return Err(invalid_at(
            "volumes path",
            &volume.path.replaced(path),
            rule,
        ));
    }
    let mount = core::VolumeMount {
        name: planned.name.clone(),
        mount_path: path.to_owned(),
        read_only: volume.read_only.then_some(true),
        sub_path: volume.sub_path.clone(),
        ..core::VolumeMount::default()
    };
    Ok((planned, mount))
}
