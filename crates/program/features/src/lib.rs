//! Enables Cargo features of the workspace's dependencies. Cargo selects features for the
//! packages of one command: without this crate, the program, all tests, and the tests of
//! one crate would each have other features, and Cargo would build the dependencies
//! again for each of them, with all crates that depend on them.
//!
//! It has the features that some of the workspace's crates need and others do not.
//! The tests of all crates depend on it; commands that build the program for tests select it
//! too. Users' programs and releases do not.
//! `cargo xtask tidy` reports differences.
//!
//! It also has helpers for the tests of several crates, without dependencies.

pub mod small_disk;
