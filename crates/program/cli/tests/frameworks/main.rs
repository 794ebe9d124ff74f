//! Compatibility with the frameworks: they read the configuration that Longshore writes for them,
//! and run distributed on the embedded cluster. The tests are expensive: `cargo xtask test
//! --frameworks` installs the frameworks and runs these tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod elastic;
mod install;
#[path = "../program/machine.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod machine;
mod page;
mod readers;
mod runs;
mod servers;
mod specs;
mod tensorflow;
