//! The pod garbage collector, which deletes pods whose node no longer exists, pods that terminate
//! without a node, and the oldest finished pods if there are too many.

mod controller;
mod decide;
mod pod;

pub(crate) use controller::{Pace, run};
