//! The nodes of an embedded cluster: sessions, resource usage, restarts, and several nodes.
#![allow(clippy::unwrap_used)]

mod restart;
mod sessions;
mod several;
mod start;
mod usage;
