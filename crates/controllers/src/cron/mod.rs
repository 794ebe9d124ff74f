//! The CronJob controller: `due` and `plan` decide and are pure, `jobs` makes
//! the Jobs, `store` is its memory, `controller` carries plans out.

mod controller;
mod due;
mod facts;
mod jobs;
mod plan;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use controller::{Pace, run};
