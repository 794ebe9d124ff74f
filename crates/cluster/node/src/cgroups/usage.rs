//! Parses the kernel's files about the usage of a cgroup. Pure.

use super::hierarchy::Version;

/// The resources that a group has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GroupUsage {
    /// The CPU time in nanoseconds.
    pub(crate) cpu_nanoseconds: u64,
    /// The working set as the kubelet computes it: bytes of memory without files that were not used
    /// recently.
    pub(crate) memory: u64,
}

/// Returns the working set from the total usage and the file `memory.stat`.
pub(super) fn working_set(version: Version, usage: &str, statistics: &str) -> Option<u64> {
    let inactive = match version {
        Version::V1 => value(statistics, "total_inactive_file"),
        Version::V2 => value(statistics, "inactive_file"),
    };
    let usage: u64 = usage.trim().parse().ok()?;
    Some(usage.saturating_sub(inactive.unwrap_or(0)))
}

/// Returns the CPU time from `cpuacct.usage` or `cpu.stat`.
pub(super) fn cpu_nanoseconds(version: Version, text: &str) -> Option<u64> {
    match version {
        Version::V1 => text.trim().parse().ok(),
        Version::V2 => value(text, "usage_usec").map(|micros| micros.saturating_mul(1000)),
    }
}

/// Returns the number after a name at the start of a line.
pub(super) fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (known, number) = line.split_once(' ')?;
        (known == name).then(|| number.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_both_versions() {
        let old = "inactive_file 1\ntotal_inactive_file 40\n";
        assert_eq!(working_set(Version::V1, "100\n", old), Some(60));
        assert_eq!(working_set(Version::V2, "100\n", old), Some(99));
        assert_eq!(working_set(Version::V1, "10\n", old), Some(0));
        assert_eq!(working_set(Version::V1, "x", old), None);
        assert_eq!(cpu_nanoseconds(Version::V1, "12345\n"), Some(12345));
        let text = "usage_usec 12\nuser_usec 5\n";
        assert_eq!(cpu_nanoseconds(Version::V2, text), Some(12_000));
        assert_eq!(cpu_nanoseconds(Version::V2, "user_usec 5\n"), None);
        assert_eq!(value("oom 1\noom_kill 3\n", "oom_kill"), Some(3));
    }
}
