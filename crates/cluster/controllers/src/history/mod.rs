//! The ControllerRevisions of StatefulSets and DaemonSets. Each template has one revision, whose
//! number is the revision of `kubectl rollout history`.
//!
//! Everything is pure except for [`requests`].

mod choose;
mod hash;
mod requests;
mod revision;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use choose::{Choice, Live, choose, surplus};
pub(crate) use requests::{NewRevision, create, remove, renumber};
pub(crate) use revision::{Revision, data, sort, template};
