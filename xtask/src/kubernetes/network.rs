//! The network namespace of the cluster.

use std::{fs, path::Path, process::Command};

use crate::run::{Outcome, finish};

/// The namespace's name.
pub(super) const NAMESPACE: &str = "longshore-real";
/// The node's address within it, and the machine's on the other end.
pub(super) const NODE: &str = "10.213.0.1";
/// The addresses of pods.
pub(super) const PODS: &str = "10.244.0.0/24";
/// Where pods reach this machine.
pub(super) const MACHINE: &str = "10.213.0.2";
const INTERFACE: &str = "longshore-real";

/// Makes it, joined to this machine by a pair of interfaces.
pub(super) fn up() -> Outcome {
    ip(&["netns", "add", NAMESPACE])?;
    let pair = [
        "link", "add", INTERFACE, "type", "veth", "peer", "name", "eth0",
    ];
    ip(&[&pair[..], &["netns", NAMESPACE]].concat())?;
    ip(&["addr", "add", &format!("{MACHINE}/30"), "dev", INTERFACE])?;
    ip(&["link", "set", INTERFACE, "up"])?;
    ip(&["route", "add", PODS, "via", NODE])?;
    let within = |words: &[&str]| ip(&[&["-n", NAMESPACE], words].concat());
    within(&["link", "set", "lo", "up"])?;
    within(&["addr", "add", &format!("{NODE}/30"), "dev", "eth0"])?;
    within(&["link", "set", "eth0", "up"])?;
    // Addresses of Services need a route before kube-proxy sees their packets.
    within(&["route", "add", "default", "dev", "eth0"])?;
    let mut forward = enter("sh");
    forward.args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
    finish(&mut forward)
}

/// A command that runs within it. (`ip netns exec` would hide the control groups.)
pub(super) fn enter(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net=/run/netns/{NAMESPACE}"))
        .arg("--")
        .arg(program);
    command
}

/// Removes it, the pods' namespaces, and what is mounted below the cluster's folder.
pub(super) fn down(state: &Path) -> Outcome {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let ours = |place: &&str| Path::new(place).starts_with(state);
    let mut places: Vec<&str> = places.filter(ours).collect();
    places.reverse();
    for place in places {
        let _ = Command::new("umount").args(["--lazy", place]).status();
    }
    // The pair's other end goes with it.
    ip(&["netns", "delete", NAMESPACE])
}

fn ip(words: &[&str]) -> Outcome {
    finish(Command::new("ip").args(words))
}
