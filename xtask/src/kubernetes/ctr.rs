//! containerd's own client.

use std::process::Command;

use super::Places;
use crate::run::{Outcome, output};

/// Runs it on the images and tasks that the kubelet sees, and gives what it prints.
pub(super) fn ctr(places: &Places, words: &[&str]) -> Outcome<String> {
    let mut ctr = Command::new(places.program("ctr"));
    ctr.arg("--address").arg(places.state("containerd.sock"));
    output(ctr.args(["--namespace", "k8s.io"]).args(words))
}
