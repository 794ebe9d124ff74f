//! The node lifecycle controller, which detects nodes that no longer report, and taints nodes by
//! their conditions.

mod controller;
mod facts;
mod health;
mod taints;

pub use controller::taint_nodes;
pub(crate) use controller::{Pace, run};
