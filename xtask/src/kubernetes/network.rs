//! The network namespace of the cluster.

use std::{fs, path::Path, process::Command};

use crate::run::{Outcome, run_command};

/// The name of the namespace.
pub(super) const NAMESPACE: &str = "longshore-real";
/// The address of the node in the namespace.
pub(super) const NODE_ADDRESS: &str = "10.213.0.1";
/// The addresses of the pods.
pub(super) const POD_CIDR: &str = "10.244.0.0/24";
/// The address at which pods reach the host.
pub(super) const HOST_ADDRESS: &str = "10.213.0.2";
const INTERFACE: &str = "longshore-real";

/// Creates the namespace and connects it to the host with a veth pair.
pub(super) fn up() -> Outcome {
    ip(&["netns", "add", NAMESPACE])?;
    let pair = [
        "link", "add", INTERFACE, "type", "veth", "peer", "name", "eth0",
    ];
    ip(&[&pair[..], &["netns", NAMESPACE]].concat())?;
    ip(&[
        "addr",
        "add",
        &format!("{HOST_ADDRESS}/30"),
        "dev",
        INTERFACE,
    ])?;
    ip(&["link", "set", INTERFACE, "up"])?;
    ip(&["route", "add", POD_CIDR, "via", NODE_ADDRESS])?;
    let within = |args: &[&str]| ip(&[&["-n", NAMESPACE], args].concat());
    within(&["link", "set", "lo", "up"])?;
    within(&["addr", "add", &format!("{NODE_ADDRESS}/30"), "dev", "eth0"])?;
    within(&["link", "set", "eth0", "up"])?;
    // kube-proxy only receives packets to Services if there is a route for them.
    within(&["route", "add", "default", "dev", "eth0"])?;
    let mut forward = enter("sh");
    forward.args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
    run_command(&mut forward)
}

/// A command that runs in the namespace. `ip netns exec` would hide the cgroups.
pub(super) fn enter(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--net=/run/netns/{NAMESPACE}"))
        .arg("--")
        .arg(program);
    command
}

/// Unmounts everything below the folder of the cluster, which includes the namespaces of the
/// pods, and removes the namespace.
pub(super) fn down(state: &Path) -> Outcome {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount_points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let is_below = |path: &&str| Path::new(path).starts_with(state);
    let mut mount_points: Vec<&str> = mount_points.filter(is_below).collect();
    mount_points.reverse();
    for path in mount_points {
        let _ = Command::new("umount").args(["--lazy", path]).status();
    }
    // This also deletes the interface on the host.
    ip(&["netns", "delete", NAMESPACE])
}

fn ip(args: &[&str]) -> Outcome {
    run_command(Command::new("ip").args(args))
}
