//! The DaemonSet controller, which keeps one pod on each eligible node.
//!
//! Everything is pure except for the loop in [`controller`] and its [`requests`].

mod backoff;
mod controller;
mod counts;
mod facts;
mod manage;
mod nodes;
mod requests;
mod rollout;
mod status;
mod template;
#[cfg(test)]
mod tests;
mod tolerations;

pub(crate) use controller::run;
