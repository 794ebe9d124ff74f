//! Ends the command of a container, from another thread of the process that supervises it.

use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Asks the command to end, as a signal of the container runtime does.
pub(super) fn terminate() {
    let _ = kill_process(getpid(), Signal::TERM);
}

/// Kills all processes of this namespace except this process and the first.
pub(super) fn kill() {
    if !super::supervise::has_namespace() {
        return;
    }
    let own = std::process::id();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.parse::<u32>().ok());
        let id = id.filter(|&id| id != 1 && id != own);
        let pid = id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        // The process may have just ended.
        let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
    }
}
