//! The ReplicaSet and ReplicationController controllers, which keep a number of pods of a template.
//! Both kinds share an implementation.
//!
//! Everything is pure except for the loop in [`controller`] and its [`requests`].

mod claim;
mod controller;
mod counts;
mod flavor;
mod order;
mod plan;
mod requests;
mod set;
mod status;
mod store;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(crate) use controller::run;
pub(crate) use flavor::{REPLICA_SET, REPLICATION_CONTROLLER};
pub(crate) use plan::{BURST, batches};
