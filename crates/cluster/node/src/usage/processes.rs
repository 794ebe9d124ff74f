//! Parses the kernel's files about processes. Pure.

use std::collections::HashMap;

/// The fields of `/proc/PID/stat` that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub(super) parent: i32,
    /// CPU time of the process and of its children that have ended, in ticks.
    pub(super) ticks: u64,
}

/// Parses `/proc/PID/stat`. The name, in parentheses, can contain any
/// character.
pub(super) fn stat(text: &str) -> Option<ProcessStat> {
    let (_, rest) = text.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    // The fields utime, stime, cutime and cstime.
    let ticks = [11, 12, 13, 14]
        .into_iter()
        .map(number)
        .sum::<Option<u64>>();
    Some(ProcessStat {
        parent: words.get(1)?.parse().ok()?,
        ticks: ticks?,
    })
}

/// Returns the resident memory of a process in bytes, first its own and then the memory that it may
/// share, from `/proc/PID/status`.
pub(super) fn memory(text: &str) -> Option<(u64, u64)> {
    let own = kilobytes(text, "RssAnon:")?;
    let shared = kilobytes(text, "RssFile:")?.saturating_add(kilobytes(text, "RssShmem:")?);
    Some((own.saturating_mul(1024), shared.saturating_mul(1024)))
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the ticks in which the machine's CPUs were busy, from `/proc/stat`.
pub(super) fn machine_ticks(text: &str) -> Option<u64> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    // Without the fields idle and iowait, and guest time, which user time
    // contains.
    let worked = numbers.iter().take(8).enumerate();
    Some(
        worked
            .filter(|(at, _)| !matches!(at, 3 | 4))
            .fold(0, |sum, (_, ticks)| sum.saturating_add(*ticks)),
    )
}

/// Returns the bytes of memory that are not available, from `/proc/meminfo`.
pub(super) fn machine_memory(text: &str) -> Option<u64> {
    let (total, available) = (
        kilobytes(text, "MemTotal:")?,
        kilobytes(text, "MemAvailable:")?,
    );
    let used = total.saturating_sub(available);
    Some(used.saturating_mul(1024))
}

/// Returns a process and all its descendants.
pub(super) fn tree(root: i32, processes: &HashMap<i32, ProcessStat>) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (id, process) in processes {
        children.entry(process.parent).or_default().push(*id);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(id) = next.pop() {
        if !processes.contains_key(&id) {
            continue;
        }
        found.push(id);
        // Removed, so that inconsistent files cannot cause a loop.
        next.extend(children.remove(&id).unwrap_or_default());
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_of_a_process() {
        let text = "42 (a) b) S 7 42 42 0 -1 4194304 100 0 0 0 5 6 10 20 20 0 1 0 99 1 2";
        let expected = ProcessStat {
            parent: 7,
            ticks: 41,
        };
        assert_eq!(stat(text), Some(expected));
        assert_eq!(stat("42 (a) S 7"), None);
        let text = "VmRSS:\t60 kB\nRssAnon:\t 30 kB\nRssFile:\t20 kB\nRssShmem:\t10 kB\n";
        assert_eq!(memory(text), Some((30 * 1024, 30 * 1024)));
        assert_eq!(memory("Name:\tkthreadd\n"), None);
    }

    #[test]
    fn files_of_the_machine() {
        let text = "cpu  10 1 5 1000 50 2 3 4 7 8\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(machine_ticks(text), Some(25));
        let text = "MemTotal:  1000 kB\nMemFree:  1 kB\nMemAvailable:   400 kB\n";
        assert_eq!(machine_memory(text), Some(600 * 1024));
        assert_eq!(machine_memory("MemTotal: 1 kB"), None);
    }

    #[test]
    fn a_tree_of_processes() {
        let process = |parent| ProcessStat { parent, ticks: 0 };
        let all = [(1, 0), (2, 1), (3, 2), (4, 1), (5, 0)];
        let all = all.map(|(id, parent)| (id, process(parent))).into();
        let sorted = |root| {
            let mut found = tree(root, &all);
            found.sort_unstable();
            found
        };
        assert_eq!(sorted(1), [1, 2, 3, 4]);
        assert_eq!(sorted(2), [2, 3]);
        assert_eq!(sorted(5), [5]);
        assert!(sorted(9).is_empty());
    }
}
