//! The basic types of the Kubernetes API: kinds, object metadata, names,
//! selectors, quantities, resources of pods, quotas, times, schedules, patch types, `Status` errors, and
//! the supported Kubernetes release.
//!
//! The crate contains only values: no I/O, no clock, no async code. All other
//! crates use its types.

pub mod facts;
pub mod hop_by_hop;
pub mod host_port;
pub mod kind;
mod limited;
pub mod meta;
pub mod name;
pub mod network;
pub mod node_condition;
pub mod patch;
pub mod quantity;
pub mod quota;
pub mod release;
pub mod resources;
pub mod schedule;
pub mod selector;
pub mod status;
pub mod text;
pub mod time;
pub mod yaml;

pub use host_port::HostPort;
pub use kind::{Gvk, KindInfo, Scope};
pub use limited::{
    CauseList, MAX_PROBLEM_BYTES, MAX_PROBLEMS, MAX_TEXT_BYTES, MessageList, shorten,
};
pub use meta::{ObjectMeta, OwnerReference};
pub use patch::PatchKind;
pub use quantity::{Quantity, QuantityError};
pub use selector::{FieldSelector, LabelSelector, SelectorError};
pub use status::{Status, StatusCause, StatusDetails, StatusReason};
