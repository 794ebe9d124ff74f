//! What pods are like beside image and command: where they may run, what they
//! mount, where variables come from. As written; [`resolve`] says what it means.
//!
//! [`resolve`]: super::resolve

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;

/// What the pods of a role are like.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodSettings {
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that do not keep the pods out.
    pub tolerations: Vec<Toleration>,
    /// As in a pod's spec.
    pub affinity: Option<toml::Table>,
    /// What is mounted.
    pub volumes: Vec<Volume>,
    /// Secrets and ConfigMaps all of whose keys are variables.
    pub env_from: Vec<EnvFrom>,
    /// The name of a PriorityClass.
    pub priority_class: Option<String>,
    /// How long a task has between SIGTERM and its end.
    pub termination_grace: Option<String>,
    /// The size of `/dev/shm`.
    pub shared_memory: Option<String>,
    /// A pod template that is merged over ours.
    pub template: Option<Template>,
}

/// A taint that does not keep a pod out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Toleration {
    /// The taint's key; all of them without.
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    pub operator: Option<String>,
    /// The taint's value.
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`; all of them without.
    pub effect: Option<String>,
    /// How many seconds a `NoExecute` is stood.
    pub seconds: Option<u32>,
}

/// A volume, and where it is mounted. One of claim, secret, `config_map`, host and
/// empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Volume {
    /// Where it is mounted.
    pub path: PathBuf,
    /// The name of a PersistentVolumeClaim.
    pub claim: Option<String>,
    /// The name of a Secret.
    pub secret: Option<String>,
    /// The name of a ConfigMap.
    pub config_map: Option<String>,
    /// A folder of the node.
    pub host: Option<PathBuf>,
    /// A folder that begins empty: its largest size, or nothing for no limit.
    pub empty: Option<String>,
    /// A folder within the volume.
    pub sub_path: Option<String>,
    /// Whether it cannot be written.
    pub read_only: bool,
}

impl Volume {
    /// Makes a relative folder of the node one below `folder`, if there is one.
    pub(super) fn found_from(&mut self, folder: Option<&Path>) {
        if let (Some(host), Some(folder)) = (&mut self.host, folder)
            && host.is_relative()
        {
            *host = without_parents(&folder.join(&*host));
        }
    }
}

/// The path without `.` and `..`, which are resolved by name.
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

/// A Secret or a ConfigMap all of whose keys are variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvFrom {
    /// The name of a Secret.
    pub secret: Option<String>,
    /// The name of a ConfigMap.
    pub config_map: Option<String>,
    /// What comes before each key.
    pub prefix: Option<String>,
}

/// A pod template, or the file that it stands in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    untagged,
    expecting = "the name of a file, or a table as a pod's template has it"
)]
pub enum Template {
    /// A YAML file, beside longshore.toml.
    File(PathBuf),
    /// The template itself.
    Table(toml::Table),
}
