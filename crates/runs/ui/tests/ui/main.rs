//! The page over real connections, with runs on an embedded cluster.
#![allow(clippy::unwrap_used)]

mod actions;
mod fixture;
mod outage;
mod parts;
mod routes;
mod security;
