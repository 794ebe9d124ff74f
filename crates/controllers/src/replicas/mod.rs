//! ReplicaSet and ReplicationController: so many pods of a template. One
//! controller for both kinds.
//!
//! Pure: [`facts`], [`claim`], [`order`], [`plan`], [`counts`], [`store`]. The
//! loop is [`controller`]; it acts by [`requests`].

mod claim;
mod controller;
mod counts;
mod facts;
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
