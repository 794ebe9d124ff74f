//! Resolves the pods of a distributed job into a cluster spec.
//!
//! - [`Resolver`]: lists the pods of a cluster, waits for missing tasks, and
//!   watches for changes.
//! - [`ClusterSpec`]: the tasks of a job and their addresses. Pure.
//! - [`assemble`]: turns pods into tasks. An [`Assembly`] sets the order, the
//!   addresses, the ports and the policy for pods that are not ready. Pure.
//! - [`Identity`]: finds the task that the calling process belongs to.
//! - [`render`]: the configuration formats of the frameworks. Pure.
//! - [`environment`]: clusters that `TF_CONFIG`, Slurm or SageMaker describe. Pure.
//! - [`names`]: waits until the DNS names of the peers resolve. It needs no access
//!   to the API.

pub mod accelerators;
pub mod address;
pub mod blocking;
mod devices;
pub mod environment;
mod error;
mod identity;
mod missing;
pub mod names;
mod order;
mod own_task;
mod pod_error;
mod policy;
pub mod render;
mod resolver;
mod spec;
mod tasks;

pub use address::{Address, Family, Port};
pub use error::Error;
pub use identity::Identity;
pub use longshore_model::facts::{NodeFacts, PodFacts, Stage};
pub use missing::{Missing, missing};
pub use order::{Order, natural_order};
pub use pod_error::PodError;
pub use policy::{Act, Doubled, NotRunning, Policy};
pub use resolver::{Generation, Generations, Resolver, Unmatched};
pub use spec::{ClusterSpec, SpecError};
pub use tasks::{Assembly, Selected, Task, TaskPod, Tasks, assemble};
