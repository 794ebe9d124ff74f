//! The embedded cluster. This crate starts API server, controllers and node
//! together, in the current process or as a background process.
//!
//! [`start`] starts a temporary cluster in this process, without sockets.
//! [`start_server`] starts only its API server, for tests that do not run pods.
//! [`EmbeddedCluster::start`] takes [`Options`]: data on disk, a TLS endpoint on
//! loopback for other clients, no node. [`daemon`] runs a cluster as a background
//! process that later commands can find.
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
//! The embedded cluster runs on a single machine and is intended for development, tests and small
//! jobs.

mod abandoned;
mod audit;
mod cluster;
pub mod controllers;
pub mod daemon;
mod descriptors;
mod end;
mod engine;
pub mod envtest;
mod error;
mod example;
mod files;
mod kept_logs;
mod keys;
mod kubeconfig;
mod layout;
mod lock;
mod namespaces;
mod node_link;
mod options;
mod place;
mod process;
mod publish;
mod settings;
mod signer;
mod start;
mod temporary;

pub use audit::AuditOptions;
pub use cluster::EmbeddedCluster;
pub use error::Error;
#[doc(hidden)]
pub use example::{blocking_example, example, example_in_pod, example_with_pods};
pub use kept_logs::KeptLogs;
pub use kubeconfig::check_place as check_kubeconfig_place;
pub use layout::Layout;
pub use longshore_apiserver::{
    AuthorizationMode, Effect, FaultError, FaultReport, FaultRule, Faults, Match, WatchEnd,
};
pub use longshore_clock::{Clock, ClockError, SettleError};
pub use longshore_engine::{ClusterClock, Snapshot};
pub use longshore_node::{
    CollectFiles, EndedPod, FillVolumes, ImageEntrypoint, ImageUser, LogLimits, MAX_NODES,
    NewVolume,
};
pub use options::Options;

/// The environment variable with the folder of the embedded cluster.
pub const DATA_DIR_ENV: &str = "LONGSHORE_DATA_DIR";
/// The name of the cluster, context, user and first node of an embedded cluster.
pub const NAME: &str = "longshore";

/// Returns the names of the nodes of a cluster with `count` nodes.
///
/// ```
/// use longshore_embedded::node_names;
///
/// assert_eq!(node_names(3), ["longshore", "longshore-2", "longshore-3"]);
/// ```
#[must_use]
pub fn node_names(count: u8) -> Vec<String> {
    let name = |number: u8| match number {
        1 => NAME.to_owned(),
        number => format!("{NAME}-{number}"),
    };
    (1..=count).map(name).collect()
}

/// Starts only the API server, in this process: no controllers, no node, no sockets, no files on
/// disk. The first server of a process takes a few milliseconds, and each further server less than
/// one, with one thread and little memory each, so that each of hundreds of tests can have its own.
///
/// Without controllers and nodes, pods do not run, Jobs do not finish, garbage is not collected,
/// and deleted namespaces are not emptied. Objects do not change unless a client changes them.
///
/// # Errors
/// See [`start`].
pub async fn start_server() -> Result<EmbeddedCluster, Error> {
    EmbeddedCluster::start(Options::server()).await
}

/// Starts an ephemeral cluster in this process: no sockets, and no files on disk after
/// [`EmbeddedCluster::stop`].
///
/// # Errors
/// A component failed to start. The error names it.
pub async fn start() -> Result<EmbeddedCluster, Error> {
    EmbeddedCluster::start(Options::default()).await
}
