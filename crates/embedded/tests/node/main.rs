//! The nodes of an embedded cluster: sessions, resource usage, and several nodes.
#![allow(clippy::unwrap_used)]

mod sessions;
mod several;
mod usage;
