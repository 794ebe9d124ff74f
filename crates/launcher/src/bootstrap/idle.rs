//! Ends all processes of a container, from its first process.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Asks all other processes of the container to end.
pub(super) fn terminate() {
    send(Signal::TERM);
}

/// Kills all other processes of the container.
pub(super) fn kill() {
    send(Signal::KILL);
}

/// Sends a signal to all processes of this namespace but this one, which is its first.
fn send(signal: Signal) {
    if !super::supervise::is_first() {
        return;
    }
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let pid = id.filter(|&id| id != 1).and_then(Pid::from_raw);
        // It may have just ended.
        let _ = pid.map(|pid| kill_process(pid, signal));
    }
}
