//! The garbage collector: `graph` decides, `controller` deletes.

mod controller;
mod graph;

pub(crate) use controller::run;
