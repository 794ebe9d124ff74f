//! Finds processes that the tests left behind.
//!
//! As a subreaper this process becomes the parent of every orphan among its
//! descendants, also of those in sessions of their own; so what is still its
//! child when the tests have ended was left behind.

use std::{fs, time::Duration};

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper, waitpid};

use crate::run::Outcome;

/// Makes this process the parent of its descendants' orphans.
pub(crate) fn adopt() -> Outcome {
    set_child_subreaper(Some(getpid()))
        .map_err(|error| format!("cannot become the parent of orphans: {error}"))
}

/// Fails, naming them, when children are left; they are killed.
pub(crate) fn check() -> Outcome {
    // A process that was told to end just now may need a moment.
    let mut left = children();
    for _ in 0..20 {
        if left.is_empty() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
        left = children();
    }
    let names: Vec<String> = left.iter().map(|pid| command_line(*pid)).collect();
    while !left.is_empty() {
        for pid in &left {
            let _ = kill_process(*pid, Signal::KILL);
            let _ = waitpid(Some(*pid), rustix::process::WaitOptions::empty());
        }
        left = children();
    }
    Err(format!(
        "the tests left processes behind (killed now):\n  {}",
        names.join("\n  ")
    ))
}

/// The living children; the dead are reaped on the way.
fn children() -> Vec<Pid> {
    while let Ok(Some(_)) = waitpid(None, rustix::process::WaitOptions::NOHANG) {}
    let me = getpid().as_raw_nonzero().get();
    let path = format!("/proc/{me}/task/{me}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}

fn command_line(pid: Pid) -> String {
    let pid = pid.as_raw_nonzero();
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line
        .split(|b| *b == 0)
        .map(String::from_utf8_lossy)
        .collect();
    format!("{pid} {}", words.join(" ").trim())
}
