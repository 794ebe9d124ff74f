//! The CronJob controller: `due` and `plan` decide and are pure, `jobs` writes
//! the Jobs, `store` is its memory, `controller` watches and carries
//! plans out by `requests`.
//!
//! It does what Kubernetes' does, but for what that one only comes near to: the
//! latest of the missed times is found exactly, however uneven they are, and
//! `@every` keeps its beat with a short `startingDeadlineSeconds`, too.

mod controller;
mod due;
mod facts;
mod jobs;
mod pace;
mod plan;
mod requests;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use controller::run;
pub(crate) use pace::Pace;
