//! The client's lists, watches and caches on a server with fault injection.
//!
//! `LONGSHORE_SOAK_SECONDS` sets the duration of each kind of fault; the default is one
//! second.
#![allow(clippy::unwrap_used)]

mod caches;
mod clock_jumps;
mod common;
mod election;
mod lists;
mod restart;
mod watches;
