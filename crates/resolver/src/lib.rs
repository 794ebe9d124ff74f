//! Cluster specs of distributed jobs, from pods.
//!
//! - [`Resolver`]: lists the pods of a cluster, waits for missing ones, follows
//!   changes.
//! - [`ClusterSpec`]: which tasks a job has and where they listen. Pure.
//! - [`assemble`]: from pods to tasks, with policy as values ([`Assembly`]):
//!   order, addresses, ports, who is not ready. Pure.
//! - [`Identity`]: which of the tasks a process in a pod is.
//! - [`render`]: what the frameworks read. Pure.
//! - [`names`]: waits until the peers' DNS names resolve; needs no access to
//!   the API.

pub mod accelerators;
pub mod address;
pub mod blocking;
mod devices;
mod error;
pub mod facts;
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
pub use facts::{NodeFacts, PodFacts, State};
pub use identity::Identity;
pub use missing::{Missing, missing};
pub use order::{Order, natural_order};
pub use pod_error::PodError;
pub use policy::{Act, Doubled, NotRunning, Policy};
pub use resolver::{Generation, Generations, Resolver};
pub use spec::{ClusterSpec, SpecError};
pub use tasks::{Assembly, Selected, Task, TaskPod, Tasks, assemble};
