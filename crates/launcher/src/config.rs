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
/// The image when none is given.
pub const DEFAULT_IMAGE: &str = "python:3-slim";
/// The published image that contains the program, for tasks whose images do not: the
/// `launcher_image` when none is given. A release that publishes one is built with
/// `LONGSHORE_LAUNCHER_IMAGE` set to its name; other builds have none.
pub const PUBLISHED_LAUNCHER_IMAGE: Option<&str> = option_env!("LONGSHORE_LAUNCHER_IMAGE");
/// The first task's port when none is given.
pub const DEFAULT_PORT: u16 = 8470;

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is there but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file is no TOML, or a value has the wrong type.
    #[error("{} is not valid: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// A key that the file must not have.
    #[error("{at}: unknown key `{key}`{} keys{place}: {valid}", nearest.as_ref().map_or_else(|| "; valid".to_owned(), |near| format!(", did you mean `{near}`? Valid")))]
    UnknownKey {
        /// Where it stands, as `longshore.toml:3:1`.
        at: String,
        /// The key, with its tables.
        key: String,
        /// Where it stands, in words.
        place: String,
        /// The valid key nearest to it.
        nearest: Option<String>,
        /// All valid keys.
        valid: String,
    },
    /// A role named by a flag that the file does not have.
    #[error("unknown role \"{role}\" in `--role {flag}`; roles known: {known}")]
    UnknownRole {
        /// The role.
        role: String,
        /// The flag's value.
        flag: String,
        /// The roles of the file.
        known: String,
    },
    /// A flag or key whose value has no meaning.
    #[error("{}invalid {what} {value:?}: {rule}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
    Value {
        /// Where it stands, as `longshore.toml:3:9`; `None` for a flag.
        place: Option<String>,
        /// The flag or key.
        what: String,
        /// Its value.
        value: String,
        /// What it must be.
        rule: String,
    },
    /// No command to run.
    #[error("{}", no_command(role.as_deref()))]
    NoCommand {
        /// The role without one; `None` when no roles were named.
        role: Option<String>,
    },
    /// A line of a file of variables that cannot be read. Without its value.
    #[error("{}:{line}: {problem}", path.display())]
    EnvFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// Standard input for a run that cannot have any.
    #[error("{flag} sends the standard input to one task{problem}")]
    Input {
        /// The flag.
        flag: &'static str,
        /// What speaks against it, and what to do.
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

/// A run, fully decided. Plain values.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSpec {
    /// The name as the user gave it, or the folder's.
    pub name: String,
    /// The namespace asked for; else the cluster's default.
    pub namespace: Option<String>,
    /// The roles, in the file's order of names.
    pub roles: Vec<RoleSpec>,
    /// The first task's port; each further task has the next one.
    pub port: u16,
    /// Where bundles go, as a URL.
    pub store: Option<String>,
    /// The image that holds the `longshore` program, when the tasks' images
    /// do not: copied in by an init container.
    pub launcher_image: Option<String>,
    /// `Always`, `Never` or `IfNotPresent`.
    pub image_pull_policy: Option<String>,
    /// Names of Secrets with registry credentials.
    pub image_pull_secrets: Vec<String>,
    /// The service account; without one the pods get no token.
    pub service_account: Option<String>,
    /// The queue that admits the run: Kueue's LocalQueue.
    pub queue: Option<String>,
    /// How often a failed task is started again.
    pub retries: u32,
    /// How long the run may take.
    pub timeout: Option<Duration>,
    /// How long a task may wait for its start.
    pub start_timeout: Duration,
    /// How long a task waits for its peers' names.
    pub peer_timeout: Duration,
    /// How long the objects stay after the end.
    pub ttl: Option<Duration>,
    /// Patterns that are not packed, in .gitignore's language.
    pub ignore: Vec<String>,
    /// Patterns of files that are sent though they look like secrets.
    pub allow_secrets: Vec<String>,
    /// Labels of the user, on every object.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the user, on every object.
    pub annotations: BTreeMap<String, String>,
    /// Whether pods keep to the Pod Security Standard `restricted`.
    pub restricted: bool,
    /// Whether the folder is packed and sent.
    pub code: bool,
    /// What the roles become in the cluster.
    pub workload: Workload,
    /// Whether the task's standard input is sent to it, and whether it is a terminal.
    pub input: Input,
    /// What the tasks take from the caller's shell, when they run on this machine.
    pub caller: Option<Caller>,
}

/// The standard input of a run's only task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Input {
    /// It has none.
    #[default]
    None,
    /// It is sent, up to its end.
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
    /// `cpu`, `memory`, `gpu`, or full resource names → quantity.
    pub resources: BTreeMap<String, String>,
    /// What else its pods are like.
    pub pods: PodSpec,
    /// Whether the role serves the others and never ends by itself: stopped
    /// when all others are done.
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

    /// A name for a run of it.
    #[must_use]
    pub fn run_name(&self, suffix: &str) -> RunName {
        match self.workload {
            Workload::Jobs => RunName::new(&self.name, suffix),
            Workload::JobSet | Workload::Scheduled(_) => RunName::short(&self.name, suffix),
        }
    }
}
