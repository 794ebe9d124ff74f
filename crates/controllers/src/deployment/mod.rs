//! Deployments: ReplicaSets by template, and the rollout from one to the next.
//!
//! Pure: everything but the loop in [`controller`] and its [`requests`].

mod bounds;
mod condition;
mod controller;
mod draft;
mod facts;
mod hash;
mod object;
mod plan;
mod progress;
mod proportion;
mod requests;
mod revision;
mod rollout;
mod status;
mod store;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(crate) use controller::run;
