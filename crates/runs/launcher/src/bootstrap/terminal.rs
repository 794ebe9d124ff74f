//! The terminal of an interactive task. Its command must not write before a client is
//! attached, because the cluster does not keep terminal output for later clients.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process_group},
    termios::{tcgetwinsize, tcsetpgrp},
};

/// The maximum time that a task waits for a client to attach before it starts anyway.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval between checks of the terminal size.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Returns true if stdin and stdout are both a terminal.
pub(super) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Waits until the terminal has a size, which an attaching client sends first. Returns immediately
/// without a terminal.
pub(super) fn wait_for_size() {
    if !is_there() {
        return;
    }
    let begin = Instant::now();
    let has_size = || tcgetwinsize(std::io::stdin()).is_ok_and(|size| size.ws_col > 0);
    while !has_size() && begin.elapsed() < ATTACH_TIMEOUT {
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Gives the terminal to a process that leads its own process group, so that Ctrl-C reaches only
/// the command, and only once. Resumes the process if it stopped because it read too early.
pub(super) fn give(child: Pid) {
    let given = tcsetpgrp(std::io::stdin(), child);
    let resumed = kill_process_group(child, Signal::CONT);
    for error in [given.err(), resumed.err()].into_iter().flatten() {
        super::messages::tell(&format!("the command does not have the terminal: {error}"));
    }
}
