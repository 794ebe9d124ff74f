//! The launcher on a current Kubernetes with kubelet, controllers and a registry. `cargo
//! xtask test --cluster real` starts one and runs these tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod attempts;
mod causes;
mod contexts;
mod disruptions;
mod examples;
mod first_commands;
mod generations;
mod images;
mod logs;
#[path = "../program/machine.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod machine;
#[path = "../program/page.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod page;
mod queues;
mod resolver;
mod resolver_watch;
mod results;
mod rights;
#[path = "../../../../runs/launcher/tests/launcher/s3/mod.rs"]
mod s3;
mod servers;
mod sessions;
mod stage;
mod stores;
mod ui;
