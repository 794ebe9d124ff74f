//! The CronJob controller. `due` and `plan` decide and are pure, `jobs` builds the Jobs, `store`
//! holds the observed state, `controller` watches and executes plans with `requests`.
//!
//! Unlike Kubernetes' controller, which is inexact in these two cases, this one computes the latest
//! missed time exactly even if the intervals vary, and `@every` keeps its interval even with a
//! short `startingDeadlineSeconds`.

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
