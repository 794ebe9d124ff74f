//! The rules of the API machinery, tested on the engine.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod apply;
mod batches;
mod custom;
mod deletes;
mod durability;
mod events;
mod kinds;
mod limits;
mod long_requests;
mod managed;
mod model;
mod namespaces;
mod reads;
mod resize;
mod service_updates;
mod snapshots;
mod support;
mod watch_turns;
mod writes;
