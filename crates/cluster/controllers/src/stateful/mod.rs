//! The StatefulSet controller, which keeps one pod for each ordinal, with a stable name and its own
//! PersistentVolumeClaims, and updates the pods from the highest ordinal.
//!
//! Everything is pure except for the loop in [`controller`] and its [`requests`].

mod action;
mod claims;
mod controller;
mod counts;
mod facts;
mod identity;
mod names;
mod plan;
mod requests;
mod status;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod update;

pub(crate) use controller::run;
