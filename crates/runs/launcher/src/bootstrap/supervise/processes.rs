//! The processes below this one, as `/proc` shows them: their parents, their pipes, and how they
//! react to signals.

use std::{collections::BTreeMap, fs, path::Path};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Programs that run a foreground child to its end before they run a trap.
const SHELLS: [&str; 8] = ["sh", "dash", "bash", "rbash", "ash", "zsh", "ksh", "mksh"];
/// The fields of `/proc/PID/stat` after the name.
const STATE: usize = 0;
const PARENT: usize = 1;
const START: usize = 19;

/// Identifies a process even if another one has received its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessId {
    pub(super) pid: i32,
    /// The start time, in ticks since the start of the system.
    pub(super) start: u64,
}

/// A process that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) parent: i32,
    pub(super) start: u64,
    pub(super) is_stopped: bool,
    /// Sets of signals, as the kernel shows them: one bit each.
    pub(super) caught: u64,
    pub(super) ignored: u64,
    pub(super) blocked: u64,
    pub(super) is_shell: bool,
    /// The pipes of the process's standard input and outputs.
    pub(super) input: Option<String>,
    pub(super) outputs: Vec<String>,
}

impl Process {
    /// Returns true if the process handles the signal, or waits for it.
    pub(super) fn handles(&self, signal: i32) -> bool {
        (self.caught | self.blocked) & bit(signal) != 0
    }

    pub(super) fn ignores(&self, signal: i32) -> bool {
        self.ignored & bit(signal) != 0
    }
}

fn bit(signal: i32) -> u64 {
    let shift = u32::try_from(signal - 1).unwrap_or(u32::MAX);
    1_u64.checked_shl(shift).unwrap_or(0)
}

/// Processes by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Processes(pub(super) BTreeMap<i32, Process>);

impl Processes {
    /// The descendants of this process. `None` if `/proc` shows the processes of another namespace.
    pub(super) fn below_this() -> Option<Self> {
        let own = getpid().as_raw_nonzero().get();
        let name = fs::read_link("/proc/self").ok()?;
        if name.as_os_str() != &*own.to_string() {
            return None;
        }
        let entries = fs::read_dir("/proc").ok()?.flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let all = pids.filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse_stat(&stat)?))
        });
        let mut below = Self(all.collect()).below(own);
        for (pid, process) in &mut below.0 {
            complete(process, Path::new(&format!("/proc/{pid}")));
        }
        Some(below)
    }

    /// The descendants of a process.
    fn below(mut self, ancestor: i32) -> Self {
        let mut found = Self::default();
        let mut parents = vec![ancestor];
        while let Some(parent) = parents.pop() {
            let children: Vec<i32> = self.children(parent).collect();
            for child in children {
                found.0.extend(self.0.remove_entry(&child));
                parents.push(child);
            }
        }
        found
    }

    pub(super) fn children(&self, parent: i32) -> impl Iterator<Item = i32> {
        let all = self.0.iter();
        all.filter(move |(_, process)| process.parent == parent)
            .map(|(pid, _)| *pid)
    }

    pub(super) fn id(&self, pid: i32) -> Option<ProcessId> {
        let start = self.0.get(&pid)?.start;
        Some(ProcessId { pid, start })
    }

    /// Sends a signal to all processes.
    pub(super) fn signal(&self, signal: Signal) {
        for pid in self.0.keys().filter_map(|pid| Pid::from_raw(*pid)) {
            // The process may have just ended.
            let _ = kill_process(pid, signal);
        }
    }
}

/// The line of `/proc/PID/stat`. `None` for a process that has ended.
fn parse_stat(stat: &str) -> Option<Process> {
    // The name, in parentheses, can contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let state = *fields.get(STATE)?;
    (!["Z", "X"].contains(&state)).then_some(())?;
    Some(Process {
        parent: fields.get(PARENT)?.parse().ok()?,
        start: fields.get(START)?.parse().ok()?,
        is_stopped: state == "T",
        ..Process::default()
    })
}

/// Reads the other files of a process. Information in unreadable files remains unknown.
fn complete(process: &mut Process, folder: &Path) {
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok())
            .unwrap_or(0)
    };
    process.caught = set("SigCgt:");
    process.ignored = set("SigIgn:");
    process.blocked = set("SigBlk:");
    let program = fs::read_link(folder.join("exe")).unwrap_or_default();
    process.is_shell = match program.file_name().and_then(|name| name.to_str()) {
        // BusyBox is a single program with many names.
        Some("busybox") => is_shell_of_busybox(folder),
        Some(name) => SHELLS.contains(&name),
        None => false,
    };
    process.input = pipe(folder, 0);
    let outputs = [1, 2].into_iter();
    process.outputs = outputs.filter_map(|number| pipe(folder, number)).collect();
}

/// The pipe that a descriptor of a process refers to.
fn pipe(process: &Path, descriptor: u32) -> Option<String> {
    let target = fs::read_link(process.join(format!("fd/{descriptor}"))).ok()?;
    let target = target.into_os_string().into_string().ok()?;
    target.starts_with("pipe:").then_some(target)
}

fn is_shell_of_busybox(folder: &Path) -> bool {
    let line = fs::read(folder.join("cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).take(2);
    let names = words.map(|word| String::from_utf8_lossy(word).into_owned());
    let mut names = names.map(|name| name.rsplit(['/', '-']).next().map(str::to_owned));
    match names.next().flatten().as_deref() {
        Some("busybox") => names
            .next()
            .flatten()
            .is_some_and(|name| SHELLS.contains(&&*name)),
        Some(name) => SHELLS.contains(&name),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_line_of_a_process() {
        let rest = "0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        let line = |state: &str| format!("12 (a) b) (c) {state} 7 12 12 {rest}");
        let found = parse_stat(&line("T")).unwrap();
        assert_eq!((found.parent, found.start), (7, 4711));
        assert!(found.is_stopped);
        assert!(!parse_stat(&line("S")).unwrap().is_stopped);
        assert_eq!(parse_stat(&line("Z")), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn children_of_this_process_are_found_with_their_signals() {
        let script = "trap : USR1; trap '' USR2; sleep 60 | cat";
        let mut command = std::process::Command::new("sh");
        let mut child = command.args(["-c", script]).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let begin = std::time::Instant::now();
        let found = loop {
            let found = Processes::below_this().unwrap();
            let of_child = found.children(pid).count();
            if of_child == 2 && found.children(pid).all(|pid| !found.0[&pid].is_shell) {
                break found;
            }
            assert!(begin.elapsed().as_secs() < 20, "{found:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let shell = &found.0[&pid];
        let [usr1, usr2] = [Signal::USR1, Signal::USR2].map(Signal::as_raw);
        assert!(shell.is_shell && shell.handles(usr1) && shell.ignores(usr2));
        let children: Vec<_> = found.children(pid).map(|pid| &found.0[&pid]).collect();
        let writer = children.iter().find(|one| !one.outputs.is_empty());
        let pipe = &writer.unwrap().outputs[0];
        assert!(children.iter().any(|one| one.input.as_ref() == Some(pipe)));
        let mut below = found.below(pid);
        below.0.retain(|_, process| process.parent == pid);
        below.signal(Signal::KILL);
        child.wait().unwrap();
    }
}
