//! Volumes and claims: binding, provisioning, protection against deletion while in
//! use, and claims of generic ephemeral volumes.

mod binder;
mod ephemeral;
pub(crate) mod facts;
pub(crate) mod matching;
pub(crate) mod names;
mod pod_volumes;
mod protection;
mod provisioner;
pub(crate) mod store;
mod subject;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use binder::run as run_binder;
pub(crate) use ephemeral::run as run_ephemeral;
pub(crate) use pod_volumes::{PodClaim, claims_of, not_owned};
pub(crate) use protection::run as run_protection;
pub use provisioner::LocalVolumes;
pub(crate) use provisioner::run as run_provisioner;
