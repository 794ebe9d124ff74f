//! Pod settings of a role: merged, checked, and converted to Kubernetes JSON.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use longshore_model::name;
use serde_json::{Value, json};

use super::{
    ConfigError, Flags, TaskOptions, Text,
    layers::Layers,
    values::{duration_at, invalid_at, quantity, subdomain},
    volume,
};

/// Pod settings of a role other than image, command and resources.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodSpec {
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations, as in a pod's spec.
    pub tolerations: Vec<Value>,
    /// Affinity, as in a pod's spec.
    pub affinity: Option<Value>,
    /// Volumes and their mounts, as in a pod's spec and a container's.
    pub volumes: Vec<(Value, Value)>,
    /// Variables with a source, as in a container's `env`.
    pub env: Vec<Value>,
    /// Sources of variables, as in a container's `envFrom`.
    pub env_from: Vec<Value>,
    /// The name of a PriorityClass.
    pub priority_class: Option<String>,
    /// The grace period between SIGTERM and SIGKILL.
    pub termination_grace: Option<Duration>,
    /// A pod template to merge over the generated one.
    pub template: Option<Value>,
}

impl PodSpec {
    /// Merges the settings of the file, which is in `folder`, of the flags, and of the role.
    /// Here, a role overrides the flags, which apply to all roles. `env` are the variables
    /// with sources.
    pub(super) fn resolve(
        file: &TaskOptions,
        flags: &Flags,
        role: &TaskOptions,
        env: Vec<Value>,
        folder: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let options = Layers([file, &flags.task, role]);
        let template = options.value(|options| &options.template);
        let tolerations = options.entries(|options| &options.tolerations);
        let env_from = options.entries(|options| &options.env_from);
        let priority_class = options.value(|options| &options.priority_class);
        if let Some(class) = priority_class {
            subdomain("priority_class", class)?;
        }
        let grace = options.value(|options| &options.termination_grace);
        let affinity = options.value(|options| &options.affinity);
        let mut spec = Self {
            node_selector: node_selector(options)?,
            tolerations: tolerations
                .map(|toleration| toleration.to_json())
                .collect::<Result<_, _>>()?,
            affinity: affinity.map(|affinity| json!(affinity)),
            volumes: volume::to_json(volumes(file, flags, role, folder))?,
            env,
            env_from: env_from
                .map(|source| source.to_json())
                .collect::<Result<_, _>>()?,
            priority_class: priority_class.map(|class| class.to_string()),
            termination_grace: grace
                .map(|text| duration_at("termination_grace", text))
                .transpose()?,
            template: template
                .map(|template| template.to_json(folder))
                .transpose()?,
        };
        if let Some(size) = options.value(|options| &options.shared_memory) {
            let size = quantity("shared_memory", size)?;
            spec.volumes.push((
                json!({"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": size}}),
                json!({"name": "shared-memory", "mountPath": "/dev/shm"}),
            ));
        }
        Ok(spec)
    }
}

fn node_selector<const N: usize>(
    options: Layers<'_, TaskOptions, N>,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut labels: BTreeMap<&Text, &Text> = BTreeMap::new();
    for (key, value) in options.entries(|options| &options.node_selector) {
        labels.insert(key, value);
    }
    for (key, value) in &labels {
        name::label_key(key).map_err(|error| invalid_at("node_selector key", key, error.rule()))?;
        name::label_value(value)
            .map_err(|error| invalid_at(format!("node_selector {key}"), value, error.rule()))?;
    }
    let labels = labels.into_iter();
    Ok(labels
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect())
}

/// All volumes. On this machine, relative host folders are relative to the file or, for
/// flags, to the current folder.
fn volumes(
    file: &TaskOptions,
    flags: &Flags,
    role: &TaskOptions,
    folder: Option<&Path>,
) -> Vec<super::Volume> {
    let here = flags.here.as_deref();
    let of_file: Option<PathBuf> =
        here.map(|here| folder.map_or(here.to_owned(), |folder| here.join(folder)));
    let of_file = of_file.as_deref();
    [(file, of_file), (&flags.task, here), (role, of_file)]
        .into_iter()
        .flat_map(|(options, base)| {
            let volumes = options.volumes.iter();
            volumes.map(move |volume| volume.below(base))
        })
        .collect()
}
