//! The configuration of a run's pods: the file `run.json` in the run's Secret. The plan writes
//! it, and the bootstrap reads it.

use std::collections::BTreeMap;

use longshore_diagnosis::names;
use longshore_resolver::{ClusterSpec, address::split, render::Job};
use serde::{Deserialize, Serialize};

use crate::{data::PodList, restarts::PodRestarts, store::SignedUrl, sweep::Sweep};

/// The file's name, in [`names::CONFIG`].
pub const FILE: &str = "run.json";

/// The configuration of a run for its pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodConfig {
    /// The run's name.
    pub run: String,
    /// The roles of the run.
    pub roles: Vec<PodRole>,
    /// The maximum time to wait for the peers, in seconds.
    pub peer_timeout: u64,
    /// The bundle, if there is one.
    pub bundle: Option<PodBundle>,
    /// True if a schedule creates the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scheduled: bool,
    /// The data that an init container fetches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<PodData>,
    /// The maximum size of the cache of data in bytes, if several pods use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_cache_limit: Option<u64>,
    /// The combinations, if the run is a sweep. Its only role then has one task, whose address all
    /// its pods have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// The settings for failed tasks and their time limits.
    #[serde(default, skip_serializing_if = "PodRestarts::is_default")]
    pub restarts: PodRestarts,
    /// The limit for idle GPUs after which a task is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleLimit>,
}

/// The limit for idle GPUs after which a task is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleLimit {
    /// The time in seconds after which the task is ended.
    pub seconds: u64,
    /// The utilisation in percent up to which a GPU is idle.
    pub percent: u32,
}

/// The configuration of a role for its pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodRole {
    /// The role's name.
    pub name: String,
    /// The addresses of the role's tasks, `host:port`, by index.
    pub tasks: Vec<String>,
    /// The environment of the role's command.
    pub env: BTreeMap<String, String>,
    /// The number of accelerators of each task.
    #[serde(default)]
    pub accelerators: u64,
    /// True for a service role.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub service: bool,
    /// The time that a task may take to end after SIGTERM, in seconds.
    #[serde(default = "default_grace")]
    pub grace: u64,
    /// Links in the folder of the code, and the paths to which they lead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
}

/// The default grace period of Kubernetes.
fn default_grace() -> u64 {
    30
}

/// Data that an init container fetches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodData {
    /// The sha256 of the data's manifest.
    pub sha256: String,
    /// The paths of the data in the tasks, by role.
    pub paths: BTreeMap<String, Vec<String>>,
    /// The list of the data's files. Secret.
    pub list: PodList,
}

/// The location of the bundle for a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodBundle {
    /// The sha256 of the bundle, in hexadecimal.
    pub sha256: String,
    /// The file, within [`names::BUNDLE_DIR`].
    pub file: String,
    /// The download, if the bundle is not mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<Download>,
}

/// A bundle that the pod downloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Download {
    /// The URL. Secret.
    pub url: SignedUrl,
    /// The size in bytes.
    pub size: u64,
}

impl PodConfig {
    /// The configuration for the run of a role's Job. For a schedule, the Job's name contains the
    /// execution.
    #[must_use]
    pub fn of_job(self, role: &str, job: &str) -> Self {
        let begin = format!("{}-{role}-", self.run);
        match job.strip_prefix(&begin).filter(|_| self.scheduled) {
            Some(execution) => self.of_execution(execution),
            None => self,
        }
    }

    /// The configuration for one execution of a schedule.
    #[must_use]
    pub fn of_execution(mut self, execution: &str) -> Self {
        for task in self.roles.iter_mut().flat_map(|role| &mut role.tasks) {
            *task = task.replace(names::EXECUTION, execution);
        }
        self.run = format!("{}-{execution}", self.run);
        self
    }

    /// The configuration with this number of tasks of a role whose Job has been scaled: fewer, or
    /// more with consecutive names and ports. A run that was planned with one task has no Service,
    /// so it cannot have more.
    #[must_use]
    pub fn scaled(mut self, role: &str, count: u32) -> Self {
        let all = self.roles.iter().flat_map(|role| &role.tasks);
        let ports = all.filter_map(|task| split(task).1);
        let next = ports.max().map_or(0, |port| port.saturating_add(1));
        let Some(own) = self.roles.iter_mut().find(|known| known.name == role) else {
            return self;
        };
        let more: Vec<String> = (0..count)
            .skip(own.tasks.len())
            .zip(next..)
            .filter_map(|(index, port)| {
                // The format is JOB-0.SERVICE.
                let (first, service) = split(own.tasks.first()?).0.split_once('.')?;
                let job = first.strip_suffix("-0")?;
                Some(format!("{job}-{index}.{service}:{port}"))
            })
            .collect();
        own.tasks.truncate(count as usize);
        own.tasks.extend(more);
        self
    }

    /// The configuration that includes this task of a Job that was scaled up, and all previous
    /// tasks.
    #[must_use]
    pub fn with_task(self, role: &str, index: u32) -> Self {
        if self.sweep.is_some() {
            return self;
        }
        let own = self.roles.iter().find(|known| known.name == role);
        match own.is_some_and(|own| own.tasks.len() <= index as usize) {
            true => self.scaled(role, index.saturating_add(1)),
            false => self,
        }
    }

    /// The number of tasks of all roles.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.roles.iter().map(|role| role.tasks.len()).sum()
    }

    /// The tasks, for renderers.
    #[must_use]
    pub fn job(&self) -> Job {
        let mut job = Job::new(self.cluster_spec());
        for role in &self.roles {
            for (index, _) in (0..).zip(&role.tasks) {
                job = job.with_slots(&role.name, index, role.accelerators);
            }
        }
        job
    }

    /// The tasks as a cluster spec.
    #[must_use]
    pub fn cluster_spec(&self) -> ClusterSpec {
        let mut spec = ClusterSpec::new();
        for role in &self.roles {
            spec.add_job(&role.name);
            for task in &role.tasks {
                spec.push(&role.name, task);
            }
        }
        spec
    }
}
