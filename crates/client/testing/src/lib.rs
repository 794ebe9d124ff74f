//! Helpers for the tests of all crates.

pub mod small_disk;
pub mod wait;
