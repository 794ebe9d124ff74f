//! Ends the remaining processes of a command.

use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, getpid, set_child_subreaper, wait};

use super::processes::Processes;

/// The maximum time to wait for killed processes.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between checks.
const INTERVAL: Duration = Duration::from_millis(10);

/// Makes this process the parent of orphans, so that [`Processes::below_this`] finds them.
pub(super) fn adopt() {
    // Otherwise, processes that leave their group would remain until the container ends.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Kills all descendants of this process, and reaps them.
pub(super) fn kill_all() {
    let begin = Instant::now();
    loop {
        let processes = Processes::below_this().unwrap_or_default();
        if processes.0.is_empty() || begin.elapsed() > TIMEOUT {
            return;
        }
        processes.signal(Signal::KILL);
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::sleep(INTERVAL);
    }
}
