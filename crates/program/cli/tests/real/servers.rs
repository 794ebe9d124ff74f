//! The cluster's own processes, restarted with their original arguments.

use std::{
    fs::{self, OpenOptions},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::{machine::signal, stage::Stage};

fn pid(stage: &Stage, name: &str) -> i32 {
    let text = fs::read_to_string(stage.state(&format!("{name}.pid")));
    text.unwrap().trim().parse().unwrap()
}

/// Stops kube-apiserver, leaves it stopped for a while, and starts it again.
pub(crate) fn restart_apiserver(stage: &Stage, pause: Duration) {
    let name = "kube-apiserver";
    let before = pid(stage, name);
    let words = fs::read_to_string(format!("/proc/{before}/cmdline")).unwrap();
    let words: Vec<&str> = words.trim_end_matches('\0').split('\0').collect();
    let log = stage.state("log").join(format!("{name}.log"));
    let log = OpenOptions::new().append(true).open(log).unwrap();
    // The other processes keep the network namespace.
    let network = format!("--net=/proc/{}/ns/net", pid(stage, "etcd"));
    let mut again = Command::new("nsenter");
    again.arg(network).arg("--").args(&words);
    again.stdin(Stdio::null()).process_group(0);
    again.stdout(log.try_clone().unwrap()).stderr(log);
    signal(before, "KILL");
    stage.eventually("kube-apiserver has stopped", || {
        fs::read_to_string(format!("/proc/{before}/stat"))
            .map_or(true, |stat| stat.contains(") Z "))
    });
    thread::sleep(pause);
    let after = again.spawn().unwrap().id();
    fs::write(stage.state(&format!("{name}.pid")), after.to_string()).unwrap();
    stage.eventually("kube-apiserver is ready", || {
        stage.ask(&["get", "--raw", "/readyz"]).as_deref() == Some("ok")
    });
}
