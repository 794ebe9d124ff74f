//! Pod settings of a role: merged, checked, and converted to Kubernetes' types.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use longshore_client::k8s_openapi::{
    api::core::v1 as core, apimachinery::pkg::api::resource::Quantity,
};
use longshore_model::name;
use serde_json::{Value, json};

use super::{
    ConfigError, Flags, Settings, TaskOptions, Text,
    layers::Layers,
    values::{Unit, duration_at, invalid_at, quantity, subdomain},
    volume,
};

/// Pod settings of a role other than image, command and resources.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodSpec {
    /// Labels that a node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of node taints.
    pub tolerations: Vec<core::Toleration>,
    /// Affinity, as the user wrote it. The plan checks its fields.
    pub affinity: Option<Value>,
    /// Volumes and their mounts.
    pub volumes: Vec<(core::Volume, core::VolumeMount)>,
    /// Paths in the folder of the code that lead to mounts.
    pub links: BTreeMap<String, String>,
    /// Variables with a source.
    pub env: Vec<core::EnvVar>,
    /// Objects whose keys all become variables.
    pub env_from: Vec<core::EnvFromSource>,
    /// The name of a PriorityClass.
    pub priority_class: Option<String>,
    /// True if the pods use the network of their node.
    pub host_network: bool,
    /// The grace period between SIGTERM and SIGKILL.
    pub termination_grace: Option<Duration>,
    /// A pod template to merge over the generated one, as the user wrote it. The plan checks its
    /// fields.
    pub template: Option<Value>,
}

impl PodSpec {
    /// Merges the settings of the file, which is in `folder`, of the flags, and of the role. A role
    /// overrides the flags, which apply to all roles. `env` are the variables with sources.
    pub(super) fn resolve(
        settings: &Settings,
        flags: &Flags,
        role: &TaskOptions,
        env: Vec<core::EnvVar>,
        folder: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let file = &settings.task;
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
        let mounted = volume::to_kubernetes(volumes(file, flags, role, folder))?;
        let mut spec = Self {
            node_selector: node_selector(options)?,
            tolerations: tolerations
                .map(|toleration| toleration.to_kubernetes())
                .collect::<Result<_, _>>()?,
            affinity: affinity.map(|affinity| json!(affinity)),
            volumes: mounted.volumes,
            links: mounted.links,
            env,
            env_from: env_from
                .map(|source| source.to_kubernetes())
                .collect::<Result<_, _>>()?,
            priority_class: priority_class.map(|class| class.to_string()),
            host_network: host_network(settings, flags, role)?,
            termination_grace: grace
                .map(|text| duration_at("termination_grace", text))
                .transpose()?,
            template: template
                .map(|template| template.to_json(folder))
                .transpose()?,
        };
        if let Some(size) = options.value(|options| &options.shared_memory) {
            let size = quantity("shared_memory", size, Unit::Memory)?;
            spec.volumes.push((
                core::Volume {
                    name: "shared-memory".to_owned(),
                    empty_dir: Some(core::EmptyDirVolumeSource {
                        medium: Some("Memory".to_owned()),
                        size_limit: Some(Quantity(size.to_owned())),
                        ..core::EmptyDirVolumeSource::default()
                    }),
                    ..core::Volume::default()
                },
                core::VolumeMount {
                    name: "shared-memory".to_owned(),
                    mount_path: "/dev/shm".to_owned(),
                    ..core::VolumeMount::default()
                },
            ));
        }
        Ok(spec)
    }
}

/// Returns true if the pods of a role use the network of their node. All levels of Pod Security
/// except `privileged` forbid this.
fn host_network(
    settings: &Settings,
    flags: &Flags,
    role: &TaskOptions,
) -> Result<bool, ConfigError> {
    let tasks = Layers([&settings.task, &flags.task, role]);
    let option = tasks.value(|options| &options.host_network);
    let restricted = Layers([&settings.run, &flags.run]).any(|run| run.restricted);
    match option.filter(|on| ***on) {
        Some(option) if restricted => Err(invalid_at(
            "host_network",
            option,
            "the Pod Security Standard `restricted` forbids the network of the node: remove `host_network` (--host-network), or `restricted` (--restricted)",
        )),
        option => Ok(option.is_some()),
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

/// All volumes. On this machine, relative host folders are relative to the file or, for flags, to
/// the current folder.
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
