//! The embedded cluster: the one place where API server, controllers and node
//! are wired together, in process or as a background process.
//!
//! [`start`] gives a throw-away cluster inside this process, without sockets;
//! [`start_server`] the API server of one, for tests that run no pods.
//! [`EmbeddedCluster::start`] takes [`Options`]: data on disk, a TLS endpoint
//! on loopback for other clients, no node. [`daemon`] runs the same thing as a
//! background process that commands find again.
//!
//! ```no_run
//! # async fn example() -> Result<(), longshore_embedded::Error> {
//! let embedded = longshore_embedded::start().await?;
//! let namespaces = embedded.cluster().namespaces().list().await;
//! # drop(namespaces);
//! embedded.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! It is for one machine: development, tests, small jobs.

mod abandoned;
mod cluster;
pub mod daemon;
mod descriptors;
mod end;
mod error;
mod example;
mod files;
mod kubeconfig;
mod layout;
mod lock;
mod logs;
mod namespaces;
mod options;
mod process;
mod publish;
mod settings;
mod streams;

pub use cluster::EmbeddedCluster;
pub use error::Error;
#[doc(hidden)]
pub use example::{blocking_example, example, example_in_pod, example_with_pods};
pub use kubeconfig::check_place as check_kubeconfig_place;
pub use layout::Layout;
pub use longshore_apiserver::{
    Effect, FaultError, FaultReport, FaultRule, Faults, Match, WatchEnd,
};
pub use longshore_node::{FillVolumes, ImageEntrypoint, LogLimits, NewVolume};
pub use options::Options;

/// Name of the cluster, context, user and node of an embedded cluster.
pub const NAME: &str = "longshore";

/// Starts the API server alone, in this process: no controllers, no node, no
/// sockets, nothing on disk. It takes about a millisecond, a thread and little
/// memory, so that every test can have its own, hundreds at a time.
///
/// Nothing runs pods, finishes Jobs, collects garbage, or empties a deleted
/// namespace: objects stay as they are written.
///
/// # Errors
/// As [`start`].
pub async fn start_server() -> Result<EmbeddedCluster, Error> {
    EmbeddedCluster::start(Options::server()).await
}

/// Starts an ephemeral cluster in this process: no sockets, nothing on disk
/// after [`EmbeddedCluster::stop`].
///
/// # Errors
/// A part could not start; the error names it.
pub async fn start() -> Result<EmbeddedCluster, Error> {
    EmbeddedCluster::start(Options::default()).await
}
