//! `--store az://…` and `gs://…` from the user's point of view, on the embedded cluster. The
//! servers are Azurite, Microsoft's emulator, and for Google a server of these tests, which checks
//! tokens and signatures. `cargo xtask test --stores` installs Azurite and runs these tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod azure;
mod checks;
mod google;
#[path = "../program/machine.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod machine;
mod process;
mod proxy;
mod server;
