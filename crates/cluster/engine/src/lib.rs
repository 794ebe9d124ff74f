//! The API machinery of Kubernetes as a state machine: a store with a single
//! revision counter, reads, writes, patches, watches, defaults, validation and
//! deletion.
//!
//! The crate does no networking; the clock and the id generator are passed in
//! [`Options`]. A single writer executes all writes sequentially, makes each
//! batch durable and then publishes it. Readers and watches use published
//! snapshots.

mod autoscaling;
mod cluster_clock;
mod custom;
mod decode;
mod dependency;
mod engine;
mod error;
mod events;
mod fork;
mod journal;
mod kinds;
mod list;
mod loader;
mod machine;
mod managed;
mod nesting;
mod object;
mod offload;
mod options;
mod patch;
mod request;
mod reviewed;
mod revision_ages;
mod rules;
mod select;
mod snapshots;
mod state;
mod store;
mod store_recovery;
mod view;
mod watch;
mod writer;

pub use cluster_clock::ClusterClock;
pub use custom::{CustomKind, PrinterColumn};
pub use dependency::Dependency;
pub use engine::{Engine, Served};
pub use error::{Error, OpenError, Subject};
pub use fork::Snapshot;
pub use longshore_clock::{Clock as SharedClock, ClockError, SettleError};
pub use machine::{Review, ReviewStage, api_service_priorities, scale_kind};
pub use nesting::NESTING;
pub use object::Object;
pub use options::{Clock, Ids, Options, RandomIds, Storage, SystemClock};
pub use request::{
    Bind, Create, Delete, DeleteCollection, DeleteOptions, Deleted, Evict, FieldValidation,
    ListRequest, Page, Patch, Propagation, ReadVersion, Subresource, Target, Update, WatchEvent,
    WatchRequest, WatchStart, WriteOptions, Written,
};
pub use reviewed::Reviewer;
pub use select::ConvertedFields;
pub use watch::Watch;
