//! The processes of a pod's containers, including processes of an earlier agent. The kernel cannot
//! kill a process that waits for a file system that does not answer, so a process can outlive its
//! agent.

use std::{collections::HashMap, fmt, fs, io, path::Path};

/// The file with the processes, in the pod's directory.
const FILE: &str = "processes";

/// A process. Its number and start time distinguish it from all others since the system started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessId {
    number: i32,
    /// The start time in ticks since the system started.
    start: u64,
}

impl ProcessId {
    /// Returns a process, or `None` if it has ended, even if its exit code has not been collected.
    pub(super) fn of(number: i32) -> Option<Self> {
        let found = Found::read(number).filter(|found| !matches!(found.state, 'Z' | 'X'))?;
        Some(Self {
            number,
            start: found.start,
        })
    }

    pub(super) fn is_alive(self) -> bool {
        Self::of(self.number) == Some(self)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.number)
    }
}

/// Records the processes of a pod for the next agent.
pub(super) fn record(folder: &Path, processes: &[ProcessId]) -> io::Result<()> {
    let mut text = boot()?;
    for process in processes {
        text.push_str(&format!("\n{} {}", process.number, process.start));
    }
    fs::write(folder.join(FILE), text)
}

/// Returns the recorded processes of a pod that are alive.
pub(super) fn recorded(folder: &Path) -> Vec<ProcessId> {
    let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    let mut lines = text.lines();
    if !boot().is_ok_and(|boot| lines.next() == Some(&boot)) {
        return Vec::new();
    }
    let process = |line: &str| {
        let (number, start) = line.split_once(' ')?;
        Some(ProcessId {
            number: number.parse().ok()?,
            start: start.parse().ok()?,
        })
    };
    let alive = lines.filter_map(process);
    alive.filter(|process| process.is_alive()).collect()
}

/// Returns an identifier of the time since the system started.
fn boot() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// Returns a text about the processes of a container that wait in the kernel, or `None` if no
/// process does. `root` is the container's first process.
pub(super) fn waiting_in_kernel(root: i32) -> Option<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let all: HashMap<i32, Found> = numbers
        .filter_map(|number| Some((number, Found::read(number)?)))
        .collect();
    let is_below = |mut number: i32| {
        // No process is deeper than the number of processes.
        for _ in 0..all.len() {
            match all.get(&number) {
                _ if number == root => return true,
                Some(found) => number = found.parent,
                None => return false,
            }
        }
        false
    };
    let waits = |number: i32| {
        // Any thread of the process counts.
        let threads = fs::read_dir(format!("/proc/{number}/task"));
        let threads = threads.into_iter().flatten().flatten();
        let stats =
            threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
        stats
            .filter_map(|stat| Found::parse(&stat))
            .any(|thread| thread.state == 'D')
    };
    let mut waiting: Vec<String> = all
        .iter()
        .filter(|(number, _)| is_below(**number) && waits(**number))
        .map(|(number, found)| format!("{number} ({})", found.name))
        .collect();
    waiting.sort_unstable();
    waiting.truncate(5);
    (!waiting.is_empty()).then(|| waiting.join(", "))
}

/// The fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    name: String,
    state: char,
    parent: i32,
    start: u64,
}

impl Found {
    fn read(number: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
    }

    /// Parses `/proc/PID/stat`. The name can contain any character.
    fn parse(text: &str) -> Option<Self> {
        let (before, rest) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            name: name.chars().filter(|letter| !letter.is_control()).collect(),
            state: words.first()?.chars().next()?,
            parent: words.get(1)?.parse().ok()?,
            start: words.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_start() {
        let folder = tempfile::tempdir().unwrap();
        assert!(recorded(folder.path()).is_empty());
        let own = ProcessId::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let other = ProcessId::of(i32::try_from(ended.id()).unwrap());
        ended.wait().unwrap();
        let reused = ProcessId {
            start: own.start + 1,
            ..own
        };
        let all: Vec<_> = [Some(own), other, Some(reused)]
            .into_iter()
            .flatten()
            .collect();
        record(folder.path(), &all).unwrap();
        assert_eq!(recorded(folder.path()), [own]);
        // After a restart of the system, the numbers belong to other processes.
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        fs::write(
            folder.path().join(FILE),
            text.replacen(&boot().unwrap(), "x", 1),
        )
        .unwrap();
        assert!(recorded(folder.path()).is_empty());
    }

    #[test]
    fn a_state_is_read_despite_the_name() {
        let text = "42 (a) D 1 (b\n) D 7 42 42 0 -1 4194304 0 0 0 0 5 6 10 20 20 0 1 0 99 1 2";
        let expected = Found {
            name: "a) D 1 (b".to_owned(),
            state: 'D',
            parent: 7,
            start: 99,
        };
        assert_eq!(Found::parse(text), Some(expected));
        assert_eq!(waiting_in_kernel(i32::MAX), None);
    }
}
