//! The client's lists, watches and caches on a server that fails on demand.
//!
//! `LONGSHORE_SOAK_SECONDS` says how long each kind of trouble lasts: a second
//! without it.
#![allow(clippy::unwrap_used)]

mod caches;
mod common;
mod jumps;
mod lists;
mod restart;
mod watches;
