//! The Job controller: decisions in `plan`, `tally` and their helpers, all
//! pure; `store` is its memory; `controller` carries plans out by `requests`.

mod backoff;
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
