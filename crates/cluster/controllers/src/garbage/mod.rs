//! The garbage collector: [`graph`] decides, [`collector`] deletes, [`controller`]
//! watches.

mod aggregated;
mod collector;
mod controller;
mod custom;
mod graph;
mod kinds;
mod metadata;

pub(crate) use controller::run;
