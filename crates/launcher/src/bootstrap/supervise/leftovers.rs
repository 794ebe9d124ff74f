//! Ends the processes that a command has left.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

/// How long to wait for killed processes.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between checks.
const INTERVAL: Duration = Duration::from_millis(10);

/// Makes this process the parent of orphans, so that [`kill_all`] finds them.
pub(super) fn adopt() {
    // Without it, processes that leave their group stay until the container ends.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Kills all descendants of this process: its children, and theirs, once they are orphans.
pub(super) fn kill_all() {
    let begin = Instant::now();
    loop {
        let children = children();
        if children.is_empty() || begin.elapsed() > TIMEOUT {
            return;
        }
        for child in children {
            let _ = kill_process(child, Signal::KILL);
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::sleep(INTERVAL);
    }
}

/// The children of this process that have not ended.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().get();
    // A `/proc` of another PID namespace has other numbers.
    let is_own =
        fs::read_link("/proc/self").is_ok_and(|name| name.as_os_str() == &*own.to_string());
    if !is_own {
        return Vec::new();
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        is_child(&stat, own)
    })
    .filter_map(Pid::from_raw)
    .collect()
}

/// Whether the line of `/proc/PID/stat` is that of a running child of a process.
fn is_child(stat: &str, parent: i32) -> bool {
    // The name, in parentheses, can contain anything.
    let Some((_, rest)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = rest.split(' ');
    let state = fields.next().unwrap_or_default();
    let found = fields.next().and_then(|field| field.parse().ok());
    state != "Z" && found == Some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_by_their_parent() {
        assert!(is_child("12 (a) b) (c) S 7 12 12 0", 7));
        assert!(!is_child("12 (a) b) (c) S 8 12 12 0", 7));
        assert!(!is_child("12 (sh) Z 7 12 12 0", 7));
        assert!(!is_child("", 7));
    }
}
