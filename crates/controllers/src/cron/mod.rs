//! The CronJob controller: `due` and `plan` decide and are pure, `jobs` writes
//! the Jobs, `store` is its memory, `controller` watches, `act` carries plans
//! out.
//!
//! It does what Kubernetes' does, but for what that one only comes near to: the
//! latest of the missed times is found exactly, however uneven they are, and
//! `@every` keeps its beat with a short `startingDeadlineSeconds`, too.

mod act;
mod controller;
mod due;
mod facts;
mod jobs;
mod plan;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use controller::{Pace, run};
