//! The API machinery of Kubernetes as a state machine: one store with one
//! revision, reads, writes, patches, watches, defaults, validation, deletion.
//!
//! No sockets, no HTTP; the clock and the ids come in as [`Options`]. One
//! writer does all writes, one after the other, makes each batch durable and
//! then publishes it; readers and watches work on published snapshots.

mod ages;
mod aside;
mod autoscaling;
mod cause;
mod custom;
mod decode;
mod defaults;
mod engine;
mod error;
mod events;
mod facts;
mod journal;
mod json;
mod kinds;
mod list;
mod load;
mod machine;
mod managed;
mod nesting;
mod object;
mod options;
mod patch;
mod request;
mod select;
mod snapshots;
mod state;
mod store;
mod validate;
mod view;
mod watch;
mod writer;

pub use custom::{CustomKind, PrinterColumn};
pub use engine::{Engine, Served};
pub use error::{Error, OpenError, Subject};
pub use machine::scale_kind;
pub use nesting::NESTING;
pub use object::Object;
pub use options::{Clock, Ids, Options, RandomIds, Storage, SystemClock};
pub use request::{
    Bind, Create, Delete, DeleteCollection, DeleteOptions, Deleted, Evict, FieldValidation,
    ListRequest, Page, Patch, Propagation, ReadVersion, Subresource, Target, Update, WatchEvent,
    WatchRequest, WatchStart, WriteOptions, Written,
};
pub use watch::Watch;
