//! The rules of the API machinery, on the engine.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod apply;
mod custom;
mod deletes;
mod durability;
mod events;
mod holds;
mod kinds;
mod managed;
mod model;
mod namespaces;
mod reads;
mod support;
mod turns;
mod writes;
