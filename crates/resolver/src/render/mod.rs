//! What the frameworks read, of one task or of all of them. Pure.
//!
//! | [`Format`] | read by |
//! |---|---|
//! | `tf-config` | TensorFlow: `TF_CONFIG` |
//! | `torch` | PyTorch: `env://`, and torchrun's `PET_*` |
//! | `jax` | JAX: `jax.distributed.initialize` |
//! | `hostfile` | Open MPI, Horovod |
//! | `deepspeed` | DeepSpeed |
//! | `ray` | Ray: `RAY_ADDRESS` |
//! | `json`, `yaml` | anybody: role to addresses |
//! | `env`, `shell` | anybody: the variables of all of the above |

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

/// Variables, in the order in which they are told.
pub type Variables = Vec<(&'static str, String)>;

/// The forms of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The value of `TF_CONFIG`, of one task.
    TfConfig,
    /// PyTorch's variables, of one task.
    Torch,
    /// JAX's variables, of one task.
    Jax,
    /// A line a host: `host slots=N`.
    Hostfile,
    /// The same, as DeepSpeed reads it.
    DeepSpeed,
    /// Ray's variable.
    Ray,
    /// Role to addresses, as JSON.
    Json,
    /// Role to addresses, as YAML.
    Yaml,
    /// All variables as `NAME=value` lines, of one task.
    Env,
    /// All variables as lines for a shell, of one task.
    Shell,
}

impl Format {
    /// All of them, with their names.
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

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(format, _)| *format == self);
        found.map_or("", |(_, name)| name)
    }

    /// Whether it is of one task.
    #[must_use]
    pub fn is_of_a_task(self) -> bool {
        matches!(
            self,
            Self::TfConfig | Self::Torch | Self::Jax | Self::Env | Self::Shell
        )
    }

    /// The port that its readers listen on by themselves.
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

/// Why a job cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// A format that is none.
    #[error("there is no format {0:?}: choose one of {names}", names = names())]
    Unknown(String),
    /// The format is of one task, and none was named.
    #[error("the format {} is of one task: name it, as in worker:0", .0.name())]
    NoTask(Format),
    /// The task is not in the job.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// There is nobody to meet.
    #[error("the job has no tasks: wait until its pods run")]
    Empty,
}

fn names() -> String {
    Format::ALL.map(|(_, name)| name).join(", ")
}

/// A job, as renderers need it: where its tasks listen, and how many processes
/// each of them is to run.
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

/// With the accelerators of each task.
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

/// A task among all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ranked<'a> {
    role: &'a str,
    index: u32,
    address: &'a str,
}

impl Job {
    /// A job whose tasks are one process each.
    #[must_use]
    pub fn new(spec: ClusterSpec) -> Self {
        Self {
            spec,
            slots: BTreeMap::new(),
        }
    }

    /// The same, with a task that has so many accelerators; 0: none.
    #[must_use]
    pub fn with_slots(mut self, role: &str, index: u32, accelerators: u64) -> Self {
        if accelerators > 0 {
            let of_role = self.slots.entry(role.to_owned()).or_default();
            of_role.insert(index, accelerators);
        }
        self
    }

    /// Its addresses.
    #[must_use]
    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// How many accelerators a task has, if it has any.
    fn slots(&self, role: &str, index: u32) -> Option<u64> {
        self.slots.get(role)?.get(&index).copied()
    }

    /// All tasks in the order of their ranks: first those of the leader's
    /// role, then role by role as they are sorted, each by index.
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

    /// The leader, and the rank of a task and how many there are.
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

    /// The variables of every framework, of one task: `TF_CONFIG`, torch's,
    /// JAX's, and Ray's for a job with a role `head`. A hostfile is a file.
    ///
    /// # Errors
    /// [`RenderError::Spec`] for a task that is not there.
    pub fn variables(&self, role: &str, index: u32) -> Result<Variables, RenderError> {
        let mut all = vec![("TF_CONFIG", tf_config(&self.spec, role, index).to_string())];
        all.extend(torch(self, role, index)?);
        all.extend(jax(self, role, index)?);
        // Where there is no head, a plain `ray.init()` would look for it in vain.
        if self.spec.tasks(ray::HEAD).next().is_some() {
            all.extend(ray(self)?);
        }
        Ok(all)
    }

    /// The job in a format, with a newline at its end.
    ///
    /// # Errors
    /// [`RenderError::NoTask`] for a format of one task without one,
    /// [`RenderError::Spec`] for a task that is not there,
    /// [`RenderError::Empty`] for a job without tasks where a leader is needed.
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

/// The task that leads, where a framework wants to know: the `chief` or
/// `master`, `launcher` or `head` if there is one, else task 0 of `worker`, else
/// that of the first job.
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
