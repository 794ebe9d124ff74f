//! The controller that binds claims to volumes and reclaims released volumes.

mod controller;
mod plan;
mod requests;

pub(crate) use controller::run;
