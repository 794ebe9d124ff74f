//! Checks that the documentation and the help are correct: the examples in the help of each command
//! and the commands of pages are run as written.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "the benchmark uses the headings")]
mod blocks;
mod examples;
#[allow(
    dead_code,
    reason = "the other test program uses more of the workspace"
)]
#[path = "../program/machine.rs"]
mod machine;
mod pages;
#[path = "../../../../runs/launcher/tests/launcher/s3/mod.rs"]
mod s3;
