//! The contents of a cgroup's files for its limits. Pure.

use super::{
    hierarchy::Version,
    limits::{Limits, PERIOD},
};

/// A value to write to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) file: &'static str,
    pub(super) value: String,
    /// True if the kernel may lack the file or reject the value.
    pub(super) optional: bool,
}

fn set(file: &'static str, value: impl ToString) -> Setting {
    Setting {
        file,
        value: value.to_string(),
        optional: false,
    }
}

fn try_to_set(file: &'static str, value: impl ToString) -> Setting {
    Setting {
        optional: true,
        ..set(file, value)
    }
}

/// Returns the settings of the memory controller, without swap, as with the kubelet.
pub(super) fn memory(version: Version, limits: &Limits) -> Vec<Setting> {
    match (version, limits.memory) {
        // The limit of memory and swap together must never be less than the limit of memory. It is
        // therefore raised first, if the kernel accepts that, and lowered last.
        (Version::V1, Some(bytes)) => vec![
            try_to_set("memory.memsw.limit_in_bytes", bytes),
            set("memory.limit_in_bytes", bytes),
            try_to_set("memory.memsw.limit_in_bytes", bytes),
        ],
        (Version::V1, None) => vec![
            try_to_set("memory.memsw.limit_in_bytes", -1),
            set("memory.limit_in_bytes", -1),
        ],
        (Version::V2, Some(bytes)) => {
            vec![try_to_set("memory.swap.max", 0), set("memory.max", bytes)]
        }
        (Version::V2, None) => vec![
            try_to_set("memory.swap.max", "max"),
            set("memory.max", "max"),
        ],
    }
}

/// Returns the settings of the CPU controller.
pub(super) fn cpu(version: Version, limits: &Limits) -> Vec<Setting> {
    match version {
        Version::V1 => {
            let quota = limits
                .quota
                .map_or("-1".to_owned(), |quota| quota.to_string());
            vec![
                set("cpu.shares", limits.shares),
                try_to_set("cpu.cfs_period_us", PERIOD),
                // Rejected if it exceeds the quota of the agent's own cgroup, which then applies.
                try_to_set("cpu.cfs_quota_us", quota),
            ]
        }
        Version::V2 => {
            let quota = limits
                .quota
                .map_or("max".to_owned(), |quota| quota.to_string());
            vec![
                set("cpu.weight", limits.weight()),
                set("cpu.max", format!("{quota} {PERIOD}")),
            ]
        }
    }
}

/// Returns the settings with which a container ends as a whole when the kernel kills one of its
/// processes for lack of memory. Version 1 kills a single process.
pub(super) fn out_of_memory(version: Version) -> Vec<Setting> {
    match version {
        Version::V1 => Vec::new(),
        Version::V2 => vec![try_to_set("memory.oom.group", 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(settings: Vec<Setting>) -> Vec<String> {
        let text = |setting: Setting| format!("{}={}", setting.file, setting.value);
        settings.into_iter().map(text).collect()
    }

    #[test]
    fn files_of_both_versions() {
        let limits = Limits {
            memory: Some(4096),
            quota: Some(20_000),
            shares: 1024,
        };
        let expected = [
            "cpu.shares=1024",
            "cpu.cfs_period_us=100000",
            "cpu.cfs_quota_us=20000",
        ];
        assert_eq!(texts(cpu(Version::V1, &limits)), expected);
        assert_eq!(
            texts(cpu(Version::V2, &limits)),
            ["cpu.weight=100", "cpu.max=20000 100000"]
        );
        assert_eq!(
            texts(memory(Version::V2, &limits)),
            ["memory.swap.max=0", "memory.max=4096"]
        );
        assert!(texts(memory(Version::V1, &limits)).contains(&"memory.limit_in_bytes=4096".into()));
        let none = Limits::default();
        assert_eq!(
            texts(cpu(Version::V2, &none)),
            ["cpu.weight=1", "cpu.max=max 100000"]
        );
        assert!(texts(cpu(Version::V1, &none)).contains(&"cpu.cfs_quota_us=-1".into()));
        assert!(texts(memory(Version::V1, &none)).contains(&"memory.limit_in_bytes=-1".into()));
        assert!(texts(memory(Version::V2, &none)).contains(&"memory.max=max".into()));
        assert_eq!(texts(out_of_memory(Version::V2)), ["memory.oom.group=1"]);
    }
}
