//! `longshore.toml` and flags, merged into a [`RunSpec`].
//!
//! [`RunOptions`] and [`TaskOptions`] declare each option once, for the file ([`Settings`]) and for
//! the command line ([`Flags`]). [`resolve()`] interprets these raw values. Nothing here reads the
//! environment or the clock.

mod cluster;
mod code_path;
mod command;
mod data;
mod data_entry;
mod env;
mod env_file;
mod env_from;
mod error;
mod flags;
mod forward;
mod keys;
mod layers;
mod located;
mod metrics;
mod notify;
mod options;
mod outputs;
mod pod_spec;
mod resolve;
mod resources;
mod restarts;
mod role;
mod settings;
mod source;
mod sweep;
mod sweep_entry;
mod task_options;
mod template;
mod toleration;
mod values;
mod variable;
mod volume;
mod webhook;
mod workload;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use longshore_diagnosis::names::RunName;

use crate::{caller::Caller, data::PodList, dev::DevSpec, outputs::OutputRequest, pod::IdleLimit};

pub use cluster::{CONTEXT_ENV, ClusterChoice, ClusterSettings, KUBECONFIG_ENV, NamedContext};
pub use command::Command;
pub use data::{CacheVolume, DATA_LIMIT, DataCacheSpec, DataSource, DataSpec};
pub use data_entry::DataEntry;
pub use env_file::{EnvFile, pass_through};
pub use env_from::EnvFrom;
pub use error::{ConfigError, Position};
pub use flags::{Flags, LAUNCHER_IMAGE_ENV, STORE_ENV};
pub use forward::Forward;
pub use located::{Located, Text};
pub use options::RunOptions;
pub use pod_spec::PodSpec;
pub use resolve::resolve;
pub use restarts::Restarts;
pub use settings::{ContextSettings, RoleSettings, Settings};
pub use source::Source;
pub use sweep::{DEFAULT_PARALLEL, SweepSpec};
pub use sweep_entry::{SweepEntry, SweepValues};
pub use task_options::TaskOptions;
pub use template::Template;
pub use toleration::Toleration;
pub(crate) use values::fraction_rule;
pub use values::{Scalar, duration};
pub use variable::{Variable, VariableSource};
pub use volume::Volume;
pub use webhook::{WebhookSpec, WebhookUrl};
pub use workload::{Schedule, Workload};

/// The file's name.
pub const FILE: &str = "longshore.toml";
/// The default image.
pub const DEFAULT_IMAGE: &str = "python:3-slim";
/// The published image that contains the program, for tasks whose images do not contain it. It is
/// the default of `launcher_image`. A release build sets `LONGSHORE_PUBLISHED_IMAGE` to its name;
/// other builds have no published image.
pub const PUBLISHED_LAUNCHER_IMAGE: Option<&str> = option_env!("LONGSHORE_PUBLISHED_IMAGE");
/// The default port of the first task.
pub const DEFAULT_PORT: u16 = 8470;

/// A fully resolved run. Plain values.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSpec {
    /// The name that the user specified, or the folder's name.
    pub name: String,
    /// The namespace. `None` for the default of the cluster.
    pub namespace: Option<String>,
    /// The roles.
    pub roles: Vec<RoleSpec>,
    /// The first task's port. Each further task uses the next port.
    pub port: u16,
    /// The URL of the store for bundles.
    pub store: Option<String>,
    /// The image that contains the `longshore` program, if the tasks' images do not. An init
    /// container copies the program.
    pub launcher_image: Option<String>,
    /// `Always`, `Never` or `IfNotPresent`.
    pub image_pull_policy: Option<String>,
    /// Names of Secrets with registry credentials.
    pub image_pull_secrets: Vec<String>,
    /// The service account. Without a service account, the pods get no token.
    pub service_account: Option<String>,
    /// The Kueue LocalQueue that admits the run.
    pub queue: Option<String>,
    /// The number of times to restart failed tasks.
    pub retries: u32,
    /// The settings for failed tasks, their time limits, and their checkpoints.
    pub restarts: Restarts,
    /// The maximum duration of the run.
    pub timeout: Option<Duration>,
    /// The maximum time until a task starts.
    pub start_timeout: Duration,
    /// The maximum time that a task waits until its peers' names resolve.
    pub peer_timeout: Duration,
    /// The time to keep the objects after the run ends.
    pub ttl: Option<Duration>,
    /// .gitignore patterns of files to exclude.
    pub ignore: Vec<String>,
    /// Patterns of files to include although they look like secrets.
    pub allow_secrets: Vec<String>,
    /// The user's labels, added to every object.
    pub labels: BTreeMap<String, String>,
    /// The run's tags, which can be changed later.
    pub tags: BTreeMap<String, String>,
    /// The note about the run, which can be changed later.
    pub note: Option<String>,
    /// The names of the metrics to read from log lines.
    pub metrics: Vec<String>,
    /// The program that the client runs when the run ends or waits, with its arguments.
    pub notify: Vec<String>,
    /// The webhook that is called from the cluster.
    pub webhook: Option<WebhookSpec>,
    /// The user's annotations, added to every object.
    pub annotations: BTreeMap<String, String>,
    /// True if pods meet the Pod Security Standard `restricted`.
    pub restricted: bool,
    /// True to pack and upload the folder.
    pub code: bool,
    /// The limit for idle GPUs after which a task is ended.
    pub idle: Option<IdleLimit>,
    /// The kind of workload for the roles.
    pub workload: Workload,
    /// The combinations of a sweep, each of which is a task of the only role.
    pub sweep: Option<SweepSpec>,
    /// The standard input of the task, which may be a terminal.
    pub input: Input,
    /// The environment of the invoking shell, if the tasks run on this machine.
    pub caller: Option<Caller>,
    /// The first files and folders that were excluded from the code.
    pub excluded: Vec<String>,
    /// Ports of tasks to forward to this machine while the run is followed.
    pub forward: Vec<Forward>,
    /// The settings for `longshore dev`, if tasks receive changes of the code.
    pub dev: Option<DevSpec>,
    /// The cache for data that pods fetch. `None` for a volume of each pod.
    pub data_cache: Option<DataCacheSpec>,
    /// The delivery of the roles' data to the pods.
    pub data: Vec<DataInfo>,
}

/// The delivery of a source's data to the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataInfo {
    /// The source.
    pub source: DataSource,
    /// The sha256 of the manifest.
    pub sha256: String,
    /// The delivery.
    pub delivery: DataDelivery,
}

/// The way in which the pods get data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataDelivery {
    /// A folder of the node contains it.
    Folder(PathBuf),
    /// An init container downloads it.
    Fetched(PodList),
}

/// The standard input of a run's only task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Input {
    /// The task has no input.
    #[default]
    None,
    /// The client sends its input up to the end.
    Piped,
    /// The input is a terminal.
    Terminal,
}

/// A role of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleSpec {
    /// The role's name.
    pub name: String,
    /// The number of tasks.
    pub count: u32,
    /// The image.
    pub image: String,
    /// The command.
    pub command: Vec<String>,
    /// Environment of the command.
    pub env: BTreeMap<String, String>,
    /// Quantities by `cpu`, `memory`, `gpu`, or full resource name.
    pub resources: BTreeMap<String, String>,
    /// Further settings of the role's pods.
    pub pods: PodSpec,
    /// The files of the role's tasks to keep, if any.
    pub outputs: Option<OutputRequest>,
    /// The data of the role's tasks.
    pub data: Vec<DataSpec>,
    /// True for a service role, which does not end by itself and is stopped when all other roles
    /// have ended.
    pub service: bool,
}

impl RoleSpec {
    /// Paths in the folder of the code that lead to the data and volumes of the role's tasks, with
    /// the paths of the targets.
    #[must_use]
    pub fn links(&self) -> BTreeMap<String, String> {
        let data = self.data.iter();
        let data = data.filter_map(|data| Some((data.link.clone()?, data.path.clone())));
        self.pods.links.clone().into_iter().chain(data).collect()
    }
}

impl RunSpec {
    /// The number of tasks of all roles.
    #[must_use]
    pub fn tasks(&self) -> u32 {
        self.roles
            .iter()
            .map(|role| role.count)
            .fold(0, u32::saturating_add)
    }

    /// Returns true if the tasks communicate with each other. The tasks of a sweep do not.
    #[must_use]
    pub fn has_peers(&self) -> bool {
        self.sweep.is_none() && self.tasks() > 1
    }

    /// The port on which the first task waits for the others, if all tasks restart together: the
    /// next port after the tasks' ports.
    #[must_use]
    pub fn restart_port(&self) -> u16 {
        let tasks = u16::try_from(self.tasks()).unwrap_or(u16::MAX);
        self.port.saturating_add(tasks)
    }

    /// Returns true if files of tasks are to be kept.
    #[must_use]
    pub fn has_outputs(&self) -> bool {
        self.roles.iter().any(|role| role.outputs.is_some())
    }

    /// The sources of data of all roles, each once.
    #[must_use]
    pub fn data_sources(&self) -> Vec<&DataSpec> {
        let mut sources: Vec<&DataSpec> = Vec::new();
        for data in self.roles.iter().flat_map(|role| &role.data) {
            if !sources.iter().any(|known| known.source == data.source) {
                sources.push(data);
            }
        }
        sources
    }

    /// A name for a run of this spec.
    #[must_use]
    pub fn run_name(&self, suffix: &str) -> RunName {
        match self.workload {
            Workload::Jobs => RunName::new(&self.name, suffix),
            Workload::JobSet | Workload::Scheduled(_) => RunName::short(&self.name, suffix),
        }
    }
}
