//! The rules of the API machinery, on the engine.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod deletes;
mod durability;
mod kinds;
mod model;
mod reads;
mod support;
mod writes;
