//! The HorizontalPodAutoscaler controller, which sets the replicas of its target by the resource
//! usage of the target's pods.
//!
//! Everything is pure except for the loop in [`controller`] and its [`requests`].

mod autoscaler;
mod calculate;
mod compute;
mod controller;
mod decide;
mod draft;
mod group;
mod history;
mod limits;
mod metric;
mod pod;
mod requests;
#[cfg(test)]
mod testing;
mod tracked;
mod usage;

pub(crate) use controller::{Pace, run};
