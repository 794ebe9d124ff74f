//! The CPU time and the memory of this container, from its cgroup or its processes.

use std::{fs, path::Path, time::Duration};

/// Ticks per second of the clock in the kernel's files, on all architectures.
const TICKS_PER_SECOND: u64 = 100;

/// The resources that the container has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ContainerUsage {
    pub(super) cpu: Duration,
    pub(super) memory: u64,
}

/// Measures the container that this process supervises. `/proc` lists only the container's
/// processes, because they have their own namespace.
pub(super) fn measure() -> Option<ContainerUsage> {
    of_cgroup(Path::new("/sys/fs/cgroup"))
        .or_else(|| of_processes(Path::new("/proc"), std::process::id()))
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The usage of a cgroup of version 2, if it contains only processes of this container.
fn of_cgroup(folder: &Path) -> Option<ContainerUsage> {
    // A process of another namespace has the number 0.
    let processes = read(folder.join("cgroup.procs"))?;
    let mut ids = processes.lines();
    if !ids.any(|id| id == "1") || processes.lines().any(|id| id == "0") {
        return None;
    }
    let number = |file: &str| read(folder.join(file))?.trim().parse::<u64>().ok();
    let micros = field(&read(folder.join("cpu.stat"))?, "usage_usec")?;
    let current = number("memory.current")?;
    // Like a kubelet, subtract file pages that the kernel can drop.
    let inactive = read(folder.join("memory.stat"));
    let inactive = inactive.and_then(|text| field(&text, "inactive_file"));
    Some(ContainerUsage {
        cpu: Duration::from_micros(micros),
        memory: current.saturating_sub(inactive.unwrap_or(0)),
    })
}

/// A number in a file with lines `NAME NUMBER`.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, number) = lines.find(|(key, _)| *key == name)?;
    number.trim().parse().ok()
}

/// The sum over all processes. Memory that several processes share is counted once. The memory of
/// the first process and of this process, which supervise, is not counted.
fn of_processes(proc: &Path, this: u32) -> Option<ContainerUsage> {
    let (mut ticks, mut own, mut shared) = (0_u64, 0_u64, 0_u64);
    for entry in fs::read_dir(proc).ok()?.flatten() {
        let name = entry.file_name();
        if !name
            .to_string_lossy()
            .bytes()
            .all(|byte| byte.is_ascii_digit())
        {
            continue;
        }
        let folder = entry.path();
        // A process that has ended in the meantime has no files.
        let Some(stat) = read(folder.join("stat")).and_then(|text| ticks_of(&text)) else {
            continue;
        };
        ticks = ticks.saturating_add(stat);
        let supervises = name == "1" || name.to_str() == Some(&this.to_string());
        let Some(status) = read(folder.join("status")).filter(|_| !supervises) else {
            continue;
        };
        own = own.saturating_add(kilobytes(&status, "RssAnon:"));
        let may_share = kilobytes(&status, "RssFile:") + kilobytes(&status, "RssShmem:");
        shared = shared.max(may_share);
    }
    Some(ContainerUsage {
        cpu: Duration::from_millis(ticks.saturating_mul(1000 / TICKS_PER_SECOND)),
        memory: own.saturating_add(shared).saturating_mul(1024),
    })
}

/// The CPU time of a process and of its children that have ended, from `/proc/PID/stat`. The
/// name, in parentheses, can contain any character.
fn ticks_of(text: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    // utime, stime, cutime and cstime.
    [11, 12, 13, 14]
        .into_iter()
        .map(number)
        .try_fold(0_u64, |sum, ticks| Some(sum.saturating_add(ticks?)))
}

fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn a_cgroup_counts_only_if_it_is_that_of_the_container() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                ("cgroup.procs", "1\n17\n"),
                ("cpu.stat", "usage_usec 1500000\nuser_usec 1\n"),
                ("memory.current", "5000\n"),
                ("memory.stat", "anon 1\ninactive_file 2000\n"),
            ],
        );
        let found = of_cgroup(folder.path()).unwrap();
        assert_eq!(
            (found.cpu, found.memory),
            (Duration::from_millis(1500), 3000)
        );
        write(folder.path(), &[("cgroup.procs", "0\n1\n")]);
        assert_eq!(of_cgroup(folder.path()), None);
        write(folder.path(), &[("cgroup.procs", "17\n")]);
        assert_eq!(of_cgroup(folder.path()), None);
    }

    #[test]
    fn processes_are_summed() {
        let proc = tempfile::tempdir().unwrap();
        let stat = |name: &str| format!("7 ({name}) S 1 7 7 0 -1 0 0 0 0 0 100 20 30 4 20 0 1 0 0");
        let status = "Name:\tx\nRssAnon:\t  100 kB\nRssFile:\t 30 kB\nRssShmem:\t 10 kB\n";
        for (id, name) in [("1", "a) S ("), ("2", "l"), ("7", "b"), ("8", "c")] {
            let files = [("stat", stat(name)), ("status", status.to_owned())];
            let files = files.each_ref().map(|(file, text)| (*file, text.as_str()));
            write(&proc.path().join(id), &files);
        }
        write(&proc.path().join("self"), &[("stat", "no")]);
        write(&proc.path().join("9"), &[]);
        let found = of_processes(proc.path(), 2).unwrap();
        assert_eq!(found.cpu, Duration::from_millis(6160));
        assert_eq!(found.memory, (100 + 100 + 40) * 1024);
    }

    #[test]
    fn the_own_processes_can_be_measured() {
        let found = of_processes(Path::new("/proc"), 0).unwrap();
        assert!(found.memory > 0);
    }
}
