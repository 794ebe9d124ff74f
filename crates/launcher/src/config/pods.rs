//! Pod settings other than image and command, as written: scheduling, volumes, sources of
//! variables. [`resolve`] interprets them.
//!
//! [`resolve`]: super::resolve

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;

/// Pod settings of a role.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodSettings {
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of node taints.
    pub tolerations: Vec<Toleration>,
    /// As in a pod's spec.
    pub affinity: Option<toml::Table>,
    /// Volumes to mount.
    pub volumes: Vec<Volume>,
    /// Secrets and ConfigMaps whose keys all become variables.
    pub env_from: Vec<EnvFrom>,
    /// The name of a PriorityClass.
    pub priority_class: Option<String>,
    /// The grace period of a task between SIGTERM and SIGKILL.
    pub termination_grace: Option<String>,
    /// The size of `/dev/shm`.
    pub shared_memory: Option<String>,
    /// A pod template to merge over the generated one.
    pub template: Option<Template>,
}

/// A toleration of a node taint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Toleration {
    /// The taint's key; `None` matches all taints.
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    pub operator: Option<String>,
    /// The taint's value.
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`; `None` matches all effects.
    pub effect: Option<String>,
    /// How many seconds a `NoExecute` taint is tolerated.
    pub seconds: Option<u32>,
}

/// A volume and its mount path. Exactly one of claim, secret, `config_map`, host and empty
/// is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Volume {
    /// The mount path.
    pub path: PathBuf,
    /// The name of a PersistentVolumeClaim.
    pub claim: Option<String>,
    /// The name of a Secret.
    pub secret: Option<String>,
    /// The name of a ConfigMap.
    pub config_map: Option<String>,
    /// A folder of the node.
    pub host: Option<PathBuf>,
    /// The size limit of an empty folder; an empty string for no limit.
    pub empty: Option<String>,
    /// A folder within the volume.
    pub sub_path: Option<String>,
    /// Whether it is read-only.
    pub read_only: bool,
}

impl Volume {
    /// Resolves a relative host folder against `folder`, if there is one.
    pub(super) fn found_from(&mut self, folder: Option<&Path>) {
        if let (Some(host), Some(folder)) = (&mut self.host, folder)
            && host.is_relative()
        {
            *host = without_parents(&folder.join(&*host));
        }
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

/// A Secret or ConfigMap whose keys all become variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvFrom {
    /// The name of a Secret.
    pub secret: Option<String>,
    /// The name of a ConfigMap.
    pub config_map: Option<String>,
    /// The prefix of each variable name.
    pub prefix: Option<String>,
}

/// A pod template, or the file that contains it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a file name, or a pod template as a table")]
pub enum Template {
    /// A YAML file, relative to longshore.toml.
    File(PathBuf),
    /// The template itself.
    Table(toml::Table),
}
