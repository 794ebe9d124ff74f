//! The vocabulary of Kubernetes' API: kinds, object metadata, names, selectors,
//! quantities, times, schedules, patch kinds, `Status` errors, and the release of
//! Kubernetes that is meant.
//!
//! Pure values: no I/O, no clock, no async. Every other crate speaks in these.

pub mod kind;
pub mod meta;
pub mod name;
pub mod patch;
pub mod quantity;
pub mod release;
pub mod schedule;
pub mod selector;
pub mod status;
pub mod text;
pub mod time;
pub mod yaml;

pub use kind::{Gvk, KindInfo, Scope};
pub use meta::{ObjectMeta, OwnerReference};
pub use patch::PatchKind;
pub use quantity::{Quantity, QuantityError};
pub use selector::{FieldSelector, LabelSelector, SelectorError};
pub use status::{Status, StatusCause, StatusDetails, StatusReason};
