//! The scheduler. `choose` and its helpers decide and are pure, `state` holds the
//! observed state, `controller` binds pods.

pub(crate) mod affinity;
mod budget;
mod choose;
mod controller;
mod known;
mod nomination;
mod placement;
mod ports;
mod preempt;
mod resources;
mod state;
mod storage;

pub(crate) use affinity::tolerates;
pub(crate) use choose::taints;
pub(crate) use controller::run;
pub(crate) use resources::{Amounts, of_pod};
