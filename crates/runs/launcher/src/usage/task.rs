//! The resource usage of a task, and its requests. Pure.

use longshore_diagnosis::{
    evidence::RunPod as _,
    names::Task,
    usage::{self, UsageRecord},
};
use longshore_model::facts::{PodFacts, quantity};
use serde_json::{Value, json};

/// The requests of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Requested {
    /// Cores.
    pub cpu: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<f64>,
}

/// The current usage of a running task, as reported by `metrics.k8s.io`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CurrentUsage {
    /// Cores.
    pub cpu: f64,
    /// Bytes of memory.
    pub memory: f64,
}

/// The resource usage of a task in its last attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskUsage {
    /// The task.
    pub task: Task,
    /// The name of the task's pod.
    pub pod: String,
    /// The container of the command.
    pub container: String,
    /// The program of the container's bootstrap, which prints the record.
    pub(super) program: Option<String>,
    /// True if the task requests accelerators.
    pub(super) has_accelerators: bool,
    /// True if the task is running.
    pub is_running: bool,
    /// The requests of the task.
    pub requested: Requested,
    /// The current usage, if the task is running.
    pub current: Option<CurrentUsage>,
    /// The record of the bootstrap, with the series.
    pub record: Option<UsageRecord>,
}

impl TaskUsage {
    /// Reads the pod of a task that has started. `None` for other pods.
    pub(super) fn of(pod: &PodFacts) -> Option<Self> {
        if !pod.has_started() {
            return None;
        }
        let name = pod.main_name();
        let container = pod.spec.containers.iter().find(|own| own.name == name)?;
        let requests = &container.resources.requests;
        let ended = pod.ended();
        Some(Self {
            task: pod.task()?,
            pod: pod.metadata.name.clone(),
            container: name.to_owned(),
            program: match &container.command[..] {
                [program, verb, ..] if verb == "bootstrap" => Some(program.clone()),
                _ => None,
            },
            has_accelerators: container
                .resources
                .limits
                .keys()
                .any(|name| name.contains('/')),
            is_running: !pod.is_over(),
            requested: Requested {
                cpu: quantity(requests, "cpu"),
                memory: quantity(requests, "memory"),
            },
            current: None,
            record: ended.and_then(|ended| usage::split(&ended.message).0),
        })
    }

    /// The current CPU usage in cores.
    #[must_use]
    pub fn cpu(&self) -> Option<f64> {
        let last = || Some(self.last_point()?.cpu_millicores as f64 / 1000.0);
        self.now(self.current.map(|current| current.cpu), last)
    }

    /// The current memory usage in bytes.
    #[must_use]
    pub fn memory(&self) -> Option<f64> {
        let last = || Some(self.last_point()?.memory_mib as f64 * MIB);
        self.now(self.current.map(|current| current.memory), last)
    }

    /// The current utilisation of the GPUs in percent, and their memory in bytes.
    #[must_use]
    pub fn gpu(&self) -> Option<(f64, f64)> {
        let (percent, mib) = self.last_point().filter(|_| self.is_running)?.gpu?;
        Some((percent as f64, mib as f64 * MIB))
    }

    fn now(&self, current: Option<f64>, last: impl FnOnce() -> Option<f64>) -> Option<f64> {
        self.is_running.then(|| current.or_else(last)).flatten()
    }

    fn last_point(&self) -> Option<&usage::Point> {
        self.record.as_ref()?.points.last()
    }

    /// The JSON of `longshore top --output json` and of `Run.usage()`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "role": self.task.role,
            "index": self.task.index,
            "pod": self.pod,
            "running": self.is_running,
            "requestedCpu": self.requested.cpu,
            "requestedMemory": self.requested.memory,
            "cpu": self.cpu(),
            "memory": self.memory(),
            "gpuPercent": self.gpu().map(|gpu| gpu.0),
            "gpuMemory": self.gpu().map(|gpu| gpu.1),
            "recorded": null,
        });
        if let Some(record) = &self.record {
            let gpu = record.gpu.map(|gpu| {
                json!({
                    "count": gpu.count,
                    "meanPercent": gpu.mean_percent,
                    "peakMemory": gpu.peak_memory,
                    "totalMemory": gpu.total_memory,
                    "idleSeconds": gpu.idle_seconds,
                })
            });
            let points = record.points.iter().map(|point| {
                json!({
                    "cpu": point.cpu_millicores as f64 / 1000.0,
                    "memory": point.memory_mib as f64 * MIB,
                    "gpuPercent": point.gpu.map(|gpu| gpu.0),
                    "gpuMemory": point.gpu.map(|gpu| gpu.1 as f64 * MIB),
                })
            });
            value["recorded"] = json!({
                "start": record.start,
                "seconds": record.seconds,
                "meanCpu": record.mean_cpu(),
                "peakMemory": record.peak_memory,
                "gpu": gpu,
                "idleEnd": record.idle_end,
                "interval": record.interval,
                "series": points.collect::<Vec<_>>(),
            });
        }
        value
    }
}

const MIB: f64 = 1_048_576.0;
