//! The terminal of an interactive task. Its command must not write before someone is
//! attached: a cluster keeps nothing of a terminal for those who come later.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process_group},
    termios::{tcgetwinsize, tcsetpgrp},
};

/// How long a task waits for someone to attach, before it begins anyway.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the size of the terminal is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Whether this process has a terminal at both ends.
pub(super) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Waits until the terminal has a size, if this process has one: the first thing that
/// whoever attaches sends.
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

/// Gives the terminal to a process, which leads a group of its own: so Ctrl-C reaches the
/// command alone, and once. One that was stopped for reading too early goes on.
pub(super) fn give(child: Pid) {
    let given = tcsetpgrp(std::io::stdin(), child);
    let resumed = kill_process_group(child, Signal::CONT);
    for error in [given.err(), resumed.err()].into_iter().flatten() {
        super::tell(&format!("the command does not have the terminal: {error}"));
    }
}
