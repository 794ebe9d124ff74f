//! The configuration formats of the frameworks, for one task or for all tasks.
//! Pure.
//!
//! | [`Format`] | read by |
//! |---|---|
//! | `tf-config` | TensorFlow: `TF_CONFIG` |
//! | `torch` | PyTorch: `env://`, and torchrun's `PET_*` |
//! | `jax` | JAX: `jax.distributed.initialize` |
//! | `hostfile` | Open MPI, Horovod |
//! | `deepspeed` | DeepSpeed |
//! | `ray` | Ray: `RAY_ADDRESS` |
//! | `json`, `yaml` | any program: a map from role to addresses |
//! | `env`, `shell` | any program: the variables of all formats above |

mod hosts;
mod jax;
mod ray;
mod tensorflow;
mod text;
mod torch;

use std::{collections::BTreeMap, str::FromStr};

use serde_json::Value;

pub use hosts::hostfile;
pub use jax::jax;
pub use ray::ray;
pub use tensorflow::tf_config;
pub use text::{env_lines, shell_exports};
pub use torch::torch;

use crate::{
    accelerators,
    spec::{ClusterSpec, SpecError},
    tasks::Tasks,
};

/// Environment variables, in the order in which they are printed.
pub type Variables = Vec<(&'static str, String)>;

/// The output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The value of `TF_CONFIG` for one task.
    TfConfig,
    /// PyTorch's variables for one task.
    Torch,
    /// JAX's variables for one task.
    Jax,
    /// A line for each host: `host slots=N`.
    Hostfile,
    /// The same for DeepSpeed.
    DeepSpeed,
    /// Ray's variable.
    Ray,
    /// A map from role to addresses, as JSON.
    Json,
    /// A map from role to addresses, as YAML.
    Yaml,
    /// All variables for one task, as `NAME=value` lines.
    Env,
    /// All variables for one task, as shell `export` lines.
    Shell,
}

impl Format {
    /// All formats, with their names.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::TfConfig, "tf-config"),
        (Self::Torch, "torch"),
        (Self::Jax, "jax"),
        (Self::Hostfile, "hostfile"),
        (Self::DeepSpeed, "deepspeed"),
        (Self::Ray, "ray"),
        (Self::Json, "json"),
        (Self::Yaml, "yaml"),
        (Self::Env, "env"),
        (Self::Shell, "shell"),
    ];

    /// Returns the format's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(format, _)| *format == self);
        found.map_or("", |(_, name)| name)
    }

    /// Returns true if the format describes a single task.
    #[must_use]
    pub fn is_of_a_task(self) -> bool {
        matches!(
            self,
            Self::TfConfig | Self::Torch | Self::Jax | Self::Env | Self::Shell
        )
    }

    /// Returns the default port of the framework that reads the format.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Torch => torch::PORT,
            Self::Jax => jax::PORT,
            Self::Ray => ray::PORT,
            _ => 8470,
        }
    }
}

impl FromStr for Format {
    type Err = RenderError;

    fn from_str(text: &str) -> Result<Self, RenderError> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found
            .map(|(format, _)| *format)
            .ok_or_else(|| RenderError::Unknown(text.to_owned()))
    }
}

/// The reason why a job cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The format does not exist.
    #[error("unknown format {0:?}: use one of {names}", names = names())]
    Unknown(String),
    /// The format describes a single task, and none was given.
    #[error("the format {} describes a single task: specify the task, for example worker:0", .0.name())]
    NoTask(Format),
    /// The job does not have the task.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The job has no tasks.
    #[error("the job has no tasks: wait until its pods are running")]
    Empty,
}

fn names() -> String {
    Format::ALL.map(|(_, name)| name).join(", ")
}

/// The input of the renderers: the addresses of a job's tasks, and the number of processes of each
/// task.
///
/// ```
/// use longshore_resolver::{ClusterSpec, render::{Format, Job}};
/// let mut spec = ClusterSpec::new();
/// spec.push("worker", "10.0.0.1:29500");
/// spec.push("worker", "10.0.0.2:29500");
/// let job = Job::new(spec);
/// assert_eq!(job.render(Format::Hostfile, None).unwrap(), "10.0.0.1 slots=1\n10.0.0.2 slots=1\n");
/// let torch = job.render(Format::Torch, Some(("worker", 1))).unwrap();
/// assert!(torch.starts_with("MASTER_ADDR=10.0.0.1\nMASTER_PORT=29500\nWORLD_SIZE=2\nRANK=1\n"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    spec: ClusterSpec,
    slots: BTreeMap<String, BTreeMap<u32, u64>>,
}

/// Includes the accelerators of each task.
impl From<&Tasks> for Job {
    fn from(tasks: &Tasks) -> Self {
        let mut job = Self::new(tasks.spec());
        for task in tasks {
            let number = accelerators::by_device(&task.accelerators)
                .values()
                .copied()
                .max();
            job = job.with_slots(&task.role, task.index, number.unwrap_or(0));
        }
        job
    }
}

/// A task and its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ranked<'a> {
    role: &'a str,
    index: u32,
    address: &'a str,
}

impl Job {
    /// Creates a job whose tasks have one process each.
    #[must_use]
    pub fn new(spec: ClusterSpec) -> Self {
        Self {
            spec,
            slots: BTreeMap::new(),
        }
    }

    /// Sets the number of accelerators of a task. 0 removes the setting.
    #[must_use]
    pub fn with_slots(mut self, role: &str, index: u32, accelerators: u64) -> Self {
        if accelerators > 0 {
            let of_role = self.slots.entry(role.to_owned()).or_default();
            of_role.insert(index, accelerators);
        }
        self
    }

    /// Returns the addresses of the tasks.
    #[must_use]
    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// Returns the number of accelerators of a task, if it has any.
    fn slots(&self, role: &str, index: u32) -> Option<u64> {
        self.slots.get(role)?.get(&index).copied()
    }

    /// Returns all tasks in the order of their ranks: first the leader's role, then
    /// the other roles in sorted order, each by index.
    fn ranked(&self) -> Vec<Ranked<'_>> {
        let first = leader(&self.spec).map(|(role, _)| role);
        let others = self.spec.jobs().filter(|role| Some(*role) != first);
        let tasks = first.into_iter().chain(others).flat_map(|role| {
            self.spec.tasks(role).map(move |(index, address)| Ranked {
                role,
                index,
                address,
            })
        });
        tasks.collect()
    }

    /// Returns the leader, the rank of a task and the number of tasks.
    fn rank(&self, role: &str, index: u32) -> Result<(Ranked<'_>, usize, usize), RenderError> {
        self.spec.task_address(role, index)?;
        let ranked = self.ranked();
        let rank = ranked
            .iter()
            .position(|task| (task.role, task.index) == (role, index));
        match (ranked.first(), rank) {
            (Some(leader), Some(rank)) => Ok((*leader, rank, ranked.len())),
            _ => Err(RenderError::Empty),
        }
    }

    /// Returns the variables of every framework for one task: `TF_CONFIG`,
    /// PyTorch's and JAX's, and Ray's if the job has a role `head`. A hostfile is
    /// not a variable and is not included.
    ///
    /// # Errors
    /// [`RenderError::Spec`] if the task does not exist.
    pub fn variables(&self, role: &str, index: u32) -> Result<Variables, RenderError> {
        let mut all = vec![("TF_CONFIG", tf_config(&self.spec, role, index).to_string())];
        all.extend(torch(self, role, index)?);
        all.extend(jax(self, role, index)?);
        // Without a head, `RAY_ADDRESS` would make `ray.init()` fail.
        if self.spec.tasks(ray::HEAD).next().is_some() {
            all.extend(ray(self)?);
        }
        Ok(all)
    }

    /// Renders the job in a format. The text ends with a newline.
    ///
    /// # Errors
    /// [`RenderError::NoTask`] if the format needs a task and `task` is `None`,
    /// [`RenderError::Spec`] if the task does not exist, [`RenderError::Empty`] if the format needs
    /// a leader and the job has no tasks.
    pub fn render(&self, format: Format, task: Option<(&str, u32)>) -> Result<String, RenderError> {
        let task = || task.ok_or(RenderError::NoTask(format));
        Ok(match format {
            Format::Json => pretty(&self.spec.as_dict()),
            Format::Yaml => text::yaml(&self.spec),
            Format::Hostfile | Format::DeepSpeed => hostfile(self),
            Format::Ray => env_lines(&ray(self)?),
            Format::TfConfig => {
                let (role, index) = task()?;
                self.spec.task_address(role, index)?;
                format!("{}\n", tf_config(&self.spec, role, index))
            }
            Format::Torch => {
                let (role, index) = task()?;
                env_lines(&torch(self, role, index)?)
            }
            Format::Jax => {
                let (role, index) = task()?;
                env_lines(&jax(self, role, index)?)
            }
            Format::Env => {
                let (role, index) = task()?;
                env_lines(&self.variables(role, index)?)
            }
            Format::Shell => {
                let (role, index) = task()?;
                shell_exports(&self.variables(role, index)?)
            }
        })
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Returns the task that leads the job: task 0 of the first of these roles that
/// exists: `chief`, `master`, `launcher`, `head`, `worker`. Otherwise the first
/// task of the first role.
#[must_use]
pub fn leader(spec: &ClusterSpec) -> Option<(&str, u32)> {
    let first = |job: &str| spec.tasks(job).next().map(|(index, _)| index);
    let order = ["chief", "master", "launcher", ray::HEAD, "worker"];
    let known = order
        .into_iter()
        .find_map(|job| first(job).map(|index| (job, index)));
    known.or_else(|| {
        spec.jobs()
            .find_map(|job| first(job).map(|index| (job, index)))
    })
}

#[cfg(test)]
mod tests;
