//! The TTL controller: it sets the annotation of nodes with the time for which the node may
//! use Secrets and ConfigMaps that it has read.

mod controller;
mod decide;

pub(crate) use controller::run;
