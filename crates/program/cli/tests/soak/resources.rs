//! The resource usage of a cluster's process, and the resources that remain after its end.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{
    Stage,
    machine::{self, Machine},
    tally::Tally,
};

/// Maximum time for usage to come down after everything was deleted.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for memory: the history keeps deleted objects for five more minutes.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(400);
/// The shortest warm-up after which memory is compared.
const LONG_WARM_UP: Duration = Duration::from_secs(120);

/// The usage of a process and its descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    memory_kb: u64,
    descriptors: usize,
    threads: usize,
    processes: usize,
    mounts: usize,
    files: usize,
}

impl Usage {
    /// Measures until no value exceeds the earlier measurement, or until a timeout.
    ///
    /// After a short warm-up, memory still grows with features that are used for the first
    /// time, so it is only compared after a long one.
    pub(crate) fn settled(pid: i32, data: &Path, before: Option<&Self>, warm_up: Duration) -> Self {
        let begin = Instant::now();
        loop {
            let mut usage = Self::measure(pid, data);
            if warm_up < LONG_WARM_UP {
                usage.memory_kb = 0;
            }
            let enough = before.is_some_and(|before| usage.excess(before).is_empty());
            let limit = match before {
                None => SETTLE_TIMEOUT / 6,
                Some(_) if warm_up < LONG_WARM_UP => SETTLE_TIMEOUT,
                Some(_) => HISTORY_TIMEOUT,
            };
            if enough || begin.elapsed() > limit {
                return usage;
            }
            thread::sleep(Duration::from_millis(500));
        }
    }

    fn measure(pid: i32, data: &Path) -> Self {
        let process = Path::new("/proc").join(pid.to_string());
        let count = |path: &Path| fs::read_dir(path).map_or(0, Iterator::count);
        let mounts = fs::read_to_string(process.join("mountinfo")).unwrap();
        Self {
            memory_kb: memory_kb(pid).unwrap(),
            descriptors: count(&process.join("fd")),
            threads: count(&process.join("task")),
            processes: descendants(pid),
            mounts: mounts.lines().count(),
            files: files(&data.join("node")),
        }
    }

    /// Describes which values exceed the earlier measurement.
    fn excess(&self, before: &Self) -> Vec<String> {
        let mut found = Vec::new();
        // More than a fifth counts as a leak.
        let allowed = before.memory_kb + before.memory_kb / 5;
        if self.memory_kb > allowed {
            found.push(format!(
                "memory grew from {} to {} kB",
                before.memory_kb, self.memory_kb
            ));
        }
        let slack = |what: &str, was: usize, is: usize, slack: usize| {
            (is > was + slack).then(|| format!("{what} grew from {was} to {is}"))
        };
        // Connections and worker threads come and go.
        found.extend(slack(
            "descriptors",
            before.descriptors,
            self.descriptors,
            10,
        ));
        found.extend(slack("threads", before.threads, self.threads, 10));
        found.extend(slack("processes", before.processes, self.processes, 0));
        found.extend(slack("mounts", before.mounts, self.mounts, 0));
        found.extend(slack("files of the node", before.files, self.files, 0));
        found
    }

    pub(crate) fn compare(&self, before: &Self, tally: &Tally) {
        for problem in self.excess(before) {
            tally.fail(problem);
        }
    }
}

/// The resident memory of a process, if it is running.
pub(crate) fn memory_kb(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let memory = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    memory.trim().trim_end_matches(" kB").parse().ok()
}

fn descendants(pid: i32) -> usize {
    let tasks = format!("/proc/{pid}/task");
    let threads = fs::read_dir(tasks).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            let children = list.split_whitespace().map(str::to_owned);
            children.collect::<Vec<_>>()
        })
        .filter_map(|child| child.parse().ok())
        .map(|child: i32| 1 + descendants(child))
        .sum()
}

fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => 1 + files(&entry.path()),
            _ => 1,
        })
        .sum()
}

/// Fails the test if a process of a task outlives its pod.
pub(crate) fn assert_no_task(stage: &Stage) {
    let begin = Instant::now();
    while !machine::processes_with(&stage.marker).is_empty() {
        if begin.elapsed() > SETTLE_TIMEOUT {
            let left = machine::processes_with(&stage.marker);
            stage.tally.fail(format!("processes are left: {left:?}"));
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Returns true if a process is running. Zombies do not count.
pub(crate) fn is_running(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

/// Stops the cluster, and checks that it leaves no processes and mounts and has not panicked.
pub(crate) fn assert_clean_end(machine: &Machine, tally: &Tally) {
    let pid = machine.pid();
    let down = machine.longshore(&["down", "--force"]);
    if down.code != 0 {
        tally.fail(format!("the cluster cannot be stopped: {}", down.err));
    }
    if pid.is_some_and(is_running) {
        tally.fail("the cluster's process is still running".into());
    }
    let data = machine.data();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    if mounts.contains(&data.display().to_string()) {
        tally.fail(format!("mounts are left: {mounts}"));
    }
    for entry in fs::read_dir(&data).unwrap().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().contains(".log") {
            let text = fs::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&text);
            let panics: Vec<&str> = text.lines().filter(|line| line.contains("panic")).collect();
            if !panics.is_empty() {
                tally.fail(format!("panics in {name:?}: {}", panics.join("\n")));
            }
        }
    }
}
