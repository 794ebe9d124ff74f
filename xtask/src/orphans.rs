//! Finds processes that the tests left running.
//!
//! A second process of this program runs the tests. The first process is a subreaper: it
//! becomes the parent of every orphan among its descendants, including those in other
//! sessions, and reaps them when they exit, like an init process. Children that remain when
//! the tests have ended were left running.

use std::{env, fs, process::Command, time::Duration};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait, waitpid,
};

use crate::run::Outcome;

/// The variable that marks the second process.
const WATCHED_ENV: &str = "LONGSHORE_XTASK_WATCHED";

/// Runs `work` in another process of this program, with the same arguments. Fails if `work`
/// fails or leaves processes running.
pub(crate) fn watch(work: impl FnOnce() -> Outcome) -> Outcome {
    if env::var_os(WATCHED_ENV).is_some() {
        return work();
    }
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("cannot {what}: {error}");
    set_child_subreaper(Some(getpid()))
        .map_err(|error| failed("become the parent of orphans", &error))?;
    let program = env::current_exe().map_err(|error| failed("find this program", &error))?;
    // `reap_until` waits for all children, so the handle is not used for that.
    let child = Command::new(program)
        .args(env::args_os().skip(1))
        .env(WATCHED_ENV, "1")
        .spawn()
        .map_err(|error| failed("start this program again", &error))?;
    let status = reap_until(child.id())?;
    check()?;
    match status.exit_status() {
        Some(0) => Ok(()),
        Some(_) => Err("the tests failed, see above".into()),
        None => Err("a signal terminated the tests".into()),
    }
}

/// Reaps children until the process `id` exits.
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

/// Kills the remaining children, and fails with their names if there are any.
fn check() -> Outcome {
    // Processes that were just terminated may need some time to exit.
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
        "the tests left processes running (now killed):\n  {}",
        names.join("\n  ")
    ))
}

/// The running children; also reaps those that have exited.
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
