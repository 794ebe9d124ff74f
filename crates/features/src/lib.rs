//! Enables Cargo features of the workspace's dependencies. Cargo selects features for the
//! packages of one command: without this crate, the program, all tests, and the tests of
//! one crate would each have other features, and Cargo would build the dependencies
//! again for each of them, with all crates that depend on them.
//!
//! It has the features that some of the workspace's crates need and others do not.
//! The program and the tests of all crates depend on it. Users' programs do not.
//! `cargo xtask tidy` reports differences.
