//! The TTL controller, which sets the annotation of nodes with the time for which a node may use
//! Secrets and ConfigMaps that it has read.

mod controller;
mod decide;

pub(crate) use controller::run;
