//! Ends all processes of a container, from the process that supervises it.

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

/// Sends a signal to all processes of this namespace but this one and the first.
fn send(signal: Signal) {
    if !super::supervise::has_namespace() {
        return;
    }
    let own = std::process::id();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.parse::<u32>().ok());
        let id = id.filter(|&id| id != 1 && id != own);
        let pid = id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        // It may have just ended.
        let _ = pid.map(|pid| kill_process(pid, signal));
    }
}
