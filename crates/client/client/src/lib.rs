//! Reads and changes the objects of a Kubernetes cluster: a [`Cluster`], its [`View`]s, and
//! lazy, immutable [`Item`]s.
//!
//! ```no_run
//! # async fn pods() -> longshore_client::Result<()> {
//! use longshore_client::Cluster;
//!
//! let cluster = Cluster::connect().await?;
//! for pod in cluster.pods().in_namespace("default")?.filter("app=web")?.list().await?.items {
//!     println!("{} {}", pod.name(), pod.phase()?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Each request is a `tracing` span, `request`, of level DEBUG, with `method`, `path`
//! (without the query) and `code`. The feature `metrics` also counts requests with the
//! recorder that the program has installed for the `metrics` crate: `longshore_requests` by
//! `method` and `code` (0: no response), `longshore_request_seconds` until the response
//! begins, and `longshore_request_retries`.
//!
//! Exec, attach, port-forward and copy need the feature `exec`, which adds websockets and tar
//! archives to a build.
//!
//! The objects of built-in kinds have k8s-openapi's types. Configuration, TLS and
//! authentication are kube-client's; its types appear only in [`Cluster::kube_client`] and
//! in the implementation of [`Kind`].

// Each module imports only from those to its left: error, locks, kind, custom, options ·
// data · transport · discovery · versions · cluster · item, proxy · list, export · view ·
// kinds, labels, watch · cache, convert, wait, pods, relations, typed · until · manifest ·
// dynamic, blocking.
pub mod blocking;
mod cache;
mod cluster;
#[doc(hidden)]
pub mod compiled;
mod convert;
mod custom;
mod discovery;
mod dynamic;
mod election;
mod error;
mod export;
mod item;
mod kind;
pub mod kinds;
mod labels;
mod list;
mod locks;
pub mod manifest;
mod options;
mod pods;
mod proxy;
mod relations;
mod transport;
pub mod typed;
pub mod until;
mod versions;
mod view;
mod wait;
mod watch;

pub use cache::{Cache, CacheSnapshot, Change, Changes};
pub use cluster::{Cluster, Connection};
pub use custom::Custom;
pub use election::{ElectionOptions, Leadership};
pub use error::{Conflict, Error, ErrorResponse, Result};
pub use item::Item;
pub use k8s_openapi;
pub use kind::{Data, Json, KindRef, Object, ResourceScope, Typed};
pub use kinds::{
    BuiltinKind, ConfigMapItem, CronJobItem, DaemonSetItem, DeploymentItem, EventItem, JobItem,
    Kind, NamespaceItem, NodeItem, PodItem, ReplicaSetItem, ReplicationControllerItem, SecretItem,
    ServiceItem, StatefulSetItem,
};
pub use labels::{Annotations, Labels, Part, ResourceAnnotations, ResourceLabels, Words};
pub use list::List;
#[cfg(feature = "exec")]
pub use longshore_archive::Transferred;
pub use longshore_model as model;
pub use longshore_model::{FieldSelector, KindInfo, LabelSelector, ObjectMeta, OwnerReference};
pub use options::{DeleteOptions, LogOptions, Patch, Propagation};
pub use pods::LogLine;
#[cfg(feature = "exec")]
pub use pods::{
    Copied, CopyOptions, ExecOptions, Input, Output, PortForward, PortStream, Progress, Reader,
    Session,
};
pub use proxy::{ApiPath, ApiServerProxy, ProxyWatch};
pub use transport::Timing;
pub use typed::{AddressType, NamespacePhase, PodPhase, SecretType};
pub use view::{Column, Expired, Paging, Row, Scale, Table, View};
pub use watch::{Watch, WatchEvent};
