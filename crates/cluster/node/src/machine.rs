//! Information about this machine, read once.

use std::{fs, path::Path};

/// The machine information that nodes report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MachineInfo {
    /// CPU cores that this process may use.
    pub(crate) cores: usize,
    /// Memory in bytes.
    pub(crate) memory: u64,
    /// Size of the file system that stores the pods, in bytes.
    pub(crate) storage: u64,
    pub(crate) hostname: String,
    pub(crate) kernel: String,
    pub(crate) os_image: String,
    pub(crate) machine_id: String,
    pub(crate) boot_id: String,
}

impl MachineInfo {
    /// Reads the information of the machine and of the file system of `data`.
    pub(crate) fn read(data: &Path) -> Self {
        let text = |path: &str| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory(&text("/proc/meminfo")).unwrap_or(0),
            storage: storage(data),
            hostname: text("/proc/sys/kernel/hostname"),
            kernel: text("/proc/sys/kernel/osrelease"),
            os_image: pretty_name(&text("/etc/os-release")).unwrap_or_else(|| "Linux".to_owned()),
            machine_id: text("/etc/machine-id"),
            boot_id: text("/proc/sys/kernel/random/boot_id"),
        }
    }
}

/// Returns the architecture with Kubernetes' name.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

/// Returns the size of a directory's file system in bytes; 0 if it is unknown.
fn storage(folder: &Path) -> u64 {
    match rustix::fs::statvfs(folder) {
        Ok(found) => found.f_blocks.saturating_mul(found.f_frsize),
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "the size of the file system is unknown");
            0
        }
    }
}

fn memory(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
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
    fn kernel_files_are_parsed() {
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
