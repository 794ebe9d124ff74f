//! The Deployment controller: creates a ReplicaSet for each pod template and rolls
//! out changes.
//!
//! Everything is pure except for the loop in [`controller`] and its [`requests`].

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
