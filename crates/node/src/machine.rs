//! Facts about this machine, read once.

use std::fs;

/// What the node reports of the machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// Bytes of memory.
    pub(crate) memory: u64,
    pub(crate) hostname: String,
    pub(crate) kernel: String,
    pub(crate) os_image: String,
    pub(crate) machine_id: String,
    pub(crate) boot_id: String,
}

impl Facts {
    pub(crate) fn read() -> Self {
        let text = |path: &str| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory(&text("/proc/meminfo")).unwrap_or(0),
            hostname: text("/proc/sys/kernel/hostname"),
            kernel: text("/proc/sys/kernel/osrelease"),
            os_image: pretty_name(&text("/etc/os-release")).unwrap_or_else(|| "Linux".to_owned()),
            machine_id: text("/etc/machine-id"),
            boot_id: text("/proc/sys/kernel/random/boot_id"),
        }
    }
}

/// The architecture as Kubernetes calls it.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel() {
        assert_eq!(
            memory("MemFree: 1 kB\nMemTotal:       2048 kB\n"),
            Some(2_097_152)
        );
        assert_eq!(memory("MemFree: 1 kB"), None);
        assert_eq!(memory("MemTotal: much"), None);
        assert_eq!(
            pretty_name("ID=x\nPRETTY_NAME=\"X 1\"\n").as_deref(),
            Some("X 1")
        );
        assert_eq!(pretty_name(""), None);
    }
}
