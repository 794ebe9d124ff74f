//! `longshore.toml` and flags, merged into a [`RunSpec`].
//!
//! Raw values first ([`Settings`] from the file, [`Flags`] from the command
//! line), then their meaning ([`resolve`]). Nothing here reads the
//! environment or the clock.

mod env_file;
mod flags;
mod keys;
mod pod_spec;
mod pods;
mod position;
mod resolve;
mod settings;
mod source;
mod values;
mod workload;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use crate::{caller::Caller, names::RunName};

pub use env_file::{EnvFile, pass_through};
pub use flags::{Flags, PodFlags};
pub use pod_spec::PodSpec;
pub use pods::{EnvFrom, PodSettings, Template, Toleration, Volume};
pub use resolve::resolve;
pub use settings::{RoleSettings, Settings, Variable, VariableSource};
pub use source::Source;
pub use values::duration;
pub use workload::{Schedule, Workload};

/// The file's name.
pub const FILE: &str = "longshore.toml";
/// The default image.
pub const DEFAULT_IMAGE: &str = "python:3-slim";
/// The published image that contains the program, for tasks whose images do not: the
/// `launcher_image` when none is given. A release that publishes one is built with
/// `LONGSHORE_LAUNCHER_IMAGE` set to its name; other builds have none.
pub const PUBLISHED_LAUNCHER_IMAGE: Option<&str> = option_env!("LONGSHORE_LAUNCHER_IMAGE");
/// The default port of the first task.
pub const DEFAULT_PORT: u16 = 8470;

/// An invalid configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file exists but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not TOML, or a value has the wrong type.
    #[error("{} is not valid: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// An unknown key.
    #[error("{at}: unknown key `{key}`{} keys{place}: {valid}", nearest.as_ref().map_or_else(|| "; valid".to_owned(), |near| format!(", did you mean `{near}`? Valid")))]
    UnknownKey {
        /// Its position, such as `longshore.toml:3:1`.
        at: String,
        /// The key, with its tables.
        key: String,
        /// The table, in words.
        place: String,
        /// The closest valid key.
        nearest: Option<String>,
        /// All valid keys.
        valid: String,
    },
    /// A flag names a role that the file does not define.
    #[error("unknown role \"{role}\" in `--role {flag}`; known roles: {known}")]
    UnknownRole {
        /// The role.
        role: String,
        /// The flag's value.
        flag: String,
        /// The roles of the file.
        known: String,
    },
    /// An invalid value of a flag or key.
    #[error("{}invalid {what} {value:?}: {rule}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
    Value {
        /// Its position, such as `longshore.toml:3:9`; `None` for a flag.
        place: Option<String>,
        /// The flag or key.
        what: String,
        /// Its value.
        value: String,
        /// The rule that it violates.
        rule: String,
    },
    /// There is no command.
    #[error("{}", no_command(role.as_deref()))]
    NoCommand {
        /// The role without one; `None` when no roles were named.
        role: Option<String>,
    },
    /// An invalid line of an environment file. The error does not contain the value.
    #[error("{}:{line}: {problem}", path.display())]
    EnvFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// The run cannot receive standard input.
    #[error("{flag} sends the standard input to one task{problem}")]
    Input {
        /// The flag.
        flag: &'static str,
        /// The reason, and the remedy.
        problem: String,
    },
}

fn no_command(role: Option<&str>) -> String {
    match role {
        Some(role) => format!(
            "no command for role {role:?}: give one after `--`, or set `command` in longshore.toml"
        ),
        None => "no command: give one after `--`, as in `longshore run -- python train.py`, or set `command` in longshore.toml".to_owned(),
    }
}

/// A fully resolved run. Plain values.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSpec {
    /// The name that the user specified, or the folder's name.
    pub name: String,
    /// The namespace; `None` for the default of the cluster.
    pub namespace: Option<String>,
    /// The roles.
    pub roles: Vec<RoleSpec>,
    /// The first task's port; each further task has the next one.
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
    /// The service account; without one the pods get no token.
    pub service_account: Option<String>,
    /// The Kueue LocalQueue that admits the run.
    pub queue: Option<String>,
    /// The number of times to restart failed tasks.
    pub retries: u32,
    /// The maximum duration of the run.
    pub timeout: Option<Duration>,
    /// The maximum time until a task starts.
    pub start_timeout: Duration,
    /// How long a task waits until its peers' names resolve.
    pub peer_timeout: Duration,
    /// How long to keep the objects after the run ends.
    pub ttl: Option<Duration>,
    /// .gitignore patterns of files to exclude.
    pub ignore: Vec<String>,
    /// Patterns of files to include although they look like secrets.
    pub allow_secrets: Vec<String>,
    /// The user's labels, added to every object.
    pub labels: BTreeMap<String, String>,
    /// The user's annotations, added to every object.
    pub annotations: BTreeMap<String, String>,
    /// Whether pods meet the Pod Security Standard `restricted`.
    pub restricted: bool,
    /// Whether to pack and upload the folder.
    pub code: bool,
    /// The workload that the roles become.
    pub workload: Workload,
    /// Whether the task receives standard input, and whether it is a terminal.
    pub input: Input,
    /// The caller's environment, if the tasks run on this machine.
    pub caller: Option<Caller>,
}

/// The standard input of a run's only task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Input {
    /// It has none.
    #[default]
    None,
    /// It is sent up to its end.
    Piped,
    /// It is a terminal.
    Terminal,
}

/// One role of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleSpec {
    /// The role's name.
    pub name: String,
    /// How many tasks it has.
    pub count: u32,
    /// The image.
    pub image: String,
    /// The command.
    pub command: Vec<String>,
    /// Environment of the command.
    pub env: BTreeMap<String, String>,
    /// Quantities by `cpu`, `memory`, `gpu`, or full resource name.
    pub resources: BTreeMap<String, String>,
    /// Further settings of its pods.
    pub pods: PodSpec,
    /// Whether it is a service role, which does not end by itself and is stopped when all
    /// other roles have ended.
    pub service: bool,
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

    /// A name for a run of this spec.
    #[must_use]
    pub fn run_name(&self, suffix: &str) -> RunName {
        match self.workload {
            Workload::Jobs => RunName::new(&self.name, suffix),
            Workload::JobSet | Workload::Scheduled(_) => RunName::short(&self.name, suffix),
        }
    }
}
