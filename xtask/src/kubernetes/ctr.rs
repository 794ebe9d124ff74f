//! ctr, the command-line client of containerd.

use std::process::Command;

use super::Paths;
use crate::run::{Outcome, output};

/// Runs ctr in the containerd namespace of the kubelet, and returns its output.
pub(super) fn ctr(paths: &Paths, args: &[&str]) -> Outcome<String> {
    let mut ctr = Command::new(paths.program("ctr"));
    ctr.arg("--address").arg(paths.state("containerd.sock"));
    output(ctr.args(["--namespace", "k8s.io"]).args(args))
}
