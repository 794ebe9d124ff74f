//! The garbage collector: `graph` decides, `controller` deletes.

mod controller;
mod custom;
mod graph;
mod kinds;

pub(crate) use controller::run;
