//! The Job controller. `plan`, `tally` and their helpers decide and are pure,
//! `store` holds the observed state, `controller` executes plans with `requests`.

mod backoff;
mod claim;
mod conditions;
mod controller;
mod facts;
mod failure_policy;
mod indexes;
mod names;
mod plan;
mod pods;
mod requests;
mod spec;
mod store;
mod tally;
#[cfg(test)]
mod testing;

pub(crate) use backoff::BackoffLimits;
pub(crate) use controller::run;
