//! The scheduler: decisions in `choose` and its helpers, all pure; `state` is
//! its memory; `controller` binds.

mod affinity;
mod choose;
mod controller;
mod resources;
mod state;

pub(crate) use controller::run;
