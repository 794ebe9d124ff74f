//! The rules of the API machinery, on the engine.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod apply;
mod deletes;
mod durability;
mod kinds;
mod managed;
mod model;
mod reads;
mod support;
mod writes;
