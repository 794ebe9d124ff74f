//! Volumes and their mounts.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    str::FromStr,
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ConfigError, Located, Text,
    values::{invalid, invalid_at, quantity, subdomain},
};
use crate::names;

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
    /// Whether it is read-only.
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

/// Volumes with their mounts, as in a pod's spec and a container's; the last mount at a path
/// wins.
pub(super) fn to_json(
    volumes: impl IntoIterator<Item = Volume>,
) -> Result<Vec<(Value, Value)>, ConfigError> {
    let mut by_path: BTreeMap<String, Volume> = BTreeMap::new();
    for volume in volumes {
        let path = volume.path.to_string_lossy();
        let path = path.trim_end_matches('/').to_owned();
        let rule = if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
            "give the absolute path where it is mounted"
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
    let numbered = (0..).zip(&by_path);
    numbered
        .map(|(index, (path, volume))| mounted(index, path, volume))
        .collect()
}

fn mounted(index: usize, path: &str, volume: &Volume) -> Result<(Value, Value), ConfigError> {
    let name = format!("volume-{index}");
    let mut sources = Vec::new();
    if let Some(claim) = &volume.claim {
        subdomain("claim", claim)?;
        sources.push(json!({"persistentVolumeClaim": {"claimName": **claim}}));
    }
    if let Some(secret) = &volume.secret {
        subdomain("secret", secret)?;
        sources.push(json!({"secret": {"secretName": **secret}}));
    }
    if let Some(map) = &volume.config_map {
        subdomain("config_map", map)?;
        sources.push(json!({"configMap": {"name": **map}}));
    }
    if let Some(host) = &volume.host {
        let has_parent = host.components().any(|part| part == Component::ParentDir);
        if host.is_relative() || has_parent {
            let rule = "give the absolute path of a folder on the nodes, without `..`; a relative path works only on the embedded cluster";
            let shown = host.replaced(host.to_string_lossy());
            return Err(invalid_at("volumes host", &shown, rule));
        }
        sources.push(json!({"hostPath": {"path": **host}}));
    }
    if let Some(size) = &volume.empty {
        sources.push(match size.as_str() {
            "" => json!({"emptyDir": {}}),
            _ => json!({"emptyDir": {"sizeLimit": quantity("empty", size)?}}),
        });
    }
    let [source] = sources.as_mut_slice() else {
        let rule = "set exactly one of claim, secret, config_map, host, empty";
        return Err(invalid_at(
            "volumes path",
            &volume.path.replaced(path),
            rule,
        ));
    };
    let mut source = source.take();
    source["name"] = json!(name);
    let mut mount = json!({"name": name, "mountPath": path});
    if volume.read_only {
        mount["readOnly"] = json!(true);
    }
    if let Some(sub) = &volume.sub_path {
        mount["subPath"] = json!(sub);
    }
    Ok((source, mount))
}
