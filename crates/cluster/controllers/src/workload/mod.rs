//! The common parts of the controllers of StatefulSets and DaemonSets, both of which own pods and
//! ControllerRevisions.
//!
//! Everything is pure except for [`feeds`] and [`requests`].

mod claim;
mod feeds;
mod kind;
mod requests;
mod store;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use claim::{Claims, claim};
pub(crate) use feeds::feeds;
pub(crate) use kind::{Kind, Meta, REVISION_LABEL, Workload};
pub(crate) use requests::Requests;
