//! Runs, logs and writes survive: clients and clusters that are killed, connections that
//! break, pods that are deleted, logs that are rotated. Each test has its own data folder for
//! an embedded cluster.

#![allow(clippy::unwrap_used)]

mod disruptions;
mod flaky_proxy;
mod kills;
mod log_gaps;
#[allow(
    dead_code,
    reason = "the other test program uses more of the workspace"
)]
#[path = "../program/machine.rs"]
mod machine;
