//! The disruption controller, which computes how many of the pods that a PodDisruptionBudget
//! selects may be evicted.
//!
//! Everything is pure except for the loop in [`controller`], its [`requests`] and [`scale`], which
//! reads the desired number of pods of their controllers.

mod budget;
mod controller;
mod decide;
mod pod;
mod requests;
mod scale;
mod status;
#[cfg(test)]
mod testing;

pub(crate) use controller::run;
