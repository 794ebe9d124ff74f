//! Finds processes that the tests left behind.
//!
//! The work is done by a second process of this program. The first one is a
//! subreaper: it becomes the parent of every orphan among its descendants, also
//! of those in sessions of their own. It reaps them as they end, as an init
//! does; what is still its child when the work is done was left behind.

use std::{env, fs, process::Command, time::Duration};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait, waitpid,
};

use crate::run::Outcome;

/// Set for the second process.
const WATCHED: &str = "LONGSHORE_XTASK_WATCHED";

/// Does `work` in a process of its own, with the same arguments, and fails when
/// that fails or leaves processes behind.
pub(crate) fn watch(work: impl FnOnce() -> Outcome) -> Outcome {
    if env::var_os(WATCHED).is_some() {
        return work();
    }
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("cannot {what}: {error}");
    set_child_subreaper(Some(getpid()))
        .map_err(|error| failed("become the parent of orphans", &error))?;
    let program = env::current_exe().map_err(|error| failed("find this program", &error))?;
    // Not waited for by its handle: `reap_until` waits for all children alike.
    let child = Command::new(program)
        .args(env::args_os().skip(1))
        .env(WATCHED, "1")
        .spawn()
        .map_err(|error| failed("start this program again", &error))?;
    let status = reap_until(child.id())?;
    check()?;
    match status.exit_status() {
        Some(0) => Ok(()),
        Some(_) => Err("the tests failed, see above".into()),
        None => Err("the tests were ended by a signal".into()),
    }
}

/// Reaps whatever ends, until the process `id` has.
fn reap_until(id: u32) -> Outcome<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if u32::try_from(pid.as_raw_nonzero().get()) == Ok(id) => {
                return Ok(status);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("cannot wait for the tests: {error}")),
        }
    }
}

/// Fails, naming them, when children are left; they are killed.
fn check() -> Outcome {
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
            let _ = waitpid(Some(*pid), WaitOptions::empty());
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
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    let me = getpid().as_raw_nonzero();
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
