//! Cluster specs of distributed jobs, from pods.
//!
//! - [`ClusterSpec`]: which tasks a job has and where they listen. Pure.
//! - [`pods`]: from pods to a spec: order, addresses, who is not ready. Pure.
//! - [`render`]: what the frameworks read (`TF_CONFIG`). Pure.
//! - [`Resolver`]: asks a cluster, and waits for who is missing.
//! - [`names`]: waits until the peers' DNS names resolve; needs no access to
//!   the API.

pub mod names;
pub mod pods;
pub mod render;
mod resolver;
mod spec;

pub use pods::{Address, Order, PodFacts, Policy};
pub use resolver::{Error, Resolver};
pub use spec::{ClusterSpec, SpecError};
