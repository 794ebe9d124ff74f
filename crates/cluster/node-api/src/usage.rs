//! Resource usage of a node and of its containers.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

/// Resource usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Billionths of a CPU core, on average over a period.
    pub cpu_nanocores: u64,
    /// CPU time since the start, in nanoseconds.
    pub cpu_nanoseconds: u64,
    /// Bytes of memory that cannot be reclaimed.
    pub memory: u64,
}

/// The usage of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerUsage {
    /// The uid of the pod.
    pub pod_uid: String,
    /// The name of the container.
    pub name: String,
    /// The usage of the container.
    pub usage: Usage,
}

/// The usage of the nodes of a machine and of their running containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeUsage {
    /// The names of the nodes. Each has the whole machine.
    pub nodes: Vec<String>,
    /// The end of the measured period.
    pub at: Timestamp,
    /// The length of the measured period.
    pub window: Duration,
    /// The usage of the whole machine.
    pub machine: Usage,
    /// The usage of the running containers.
    pub containers: Vec<ContainerUsage>,
}

/// A measurement; `None` if it is not possible now.
pub type Measuring = BoxFuture<'static, Option<NodeUsage>>;
