//! Frameworks themselves as judges: what they read of what is written for them,
//! and distributed runs of them on the embedded cluster. Heavy: `cargo xtask test
//! --frameworks` installs them and runs these.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod install;
#[path = "../program/machine.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod machine;
mod readers;
mod runs;
mod specs;
mod tensorflow;
