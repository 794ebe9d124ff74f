//! Selects kept logs to remove because they use too much disk space. Pure.

use jiff::Timestamp;
use longshore_files::DiskLimit;

/// The default limit of the disk space of the logs of deleted pods: 10 GiB.
pub const KEPT_LOGS_LIMIT: u64 = 10 << 30;
/// The maximum number of deleted pods that are recorded.
const MOST_PODS: usize = 50_000;

/// Logs of a deleted pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size {
    pub(super) deleted: Timestamp,
    pub(super) uid: String,
    pub(super) bytes: u64,
}

/// The logs and records over the limits, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Excess {
    /// Pods whose logs are removed. Their records remain and report the removal.
    pub(super) logs: Vec<String>,
    /// Pods whose logs and records are removed.
    pub(super) pods: Vec<String>,
}

/// Selects the logs to remove on a disk with `free` free bytes. `configured` is the limit in bytes
/// on a large disk.
pub(super) fn excess(mut sizes: Vec<Size>, configured: u64, free: u64) -> Excess {
    sizes.sort_unstable();
    let all = sizes.iter().map(|size| size.bytes);
    let mut used = all.fold(0, u64::saturating_add);
    let limit = DiskLimit::on_disk(configured, free, used).bytes;
    let mut excess = Excess::default();
    let surplus = sizes.len().saturating_sub(MOST_PODS);
    for (at, size) in sizes.into_iter().enumerate() {
        if at < surplus {
            used = used.saturating_sub(size.bytes);
            excess.pods.push(size.uid);
        } else if used > limit && size.bytes > 0 {
            used = used.saturating_sub(size.bytes);
            excess.logs.push(size.uid);
        }
    }
    excess
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(bytes: &[u64]) -> Vec<Size> {
        let size = |(at, bytes): (i64, &u64)| Size {
            deleted: Timestamp::from_second(at).unwrap_or_default(),
            uid: at.to_string(),
            bytes: *bytes,
        };
        (0..).zip(bytes).map(size).collect()
    }

    fn removed(bytes: &[u64], free: u64) -> Vec<String> {
        // The order of the input does not matter.
        let sizes = sizes(bytes).into_iter().rev().collect();
        let excess = excess(sizes, KEPT_LOGS_LIMIT, free);
        assert_eq!(excess.pods, Vec::<String>::new());
        excess.logs
    }

    #[test]
    fn the_logs_of_the_pods_that_were_deleted_first_are_removed() {
        let half = KEPT_LOGS_LIMIT / 2;
        assert_eq!(removed(&[half, half], u64::MAX), [""; 0]);
        assert_eq!(removed(&[half, half, 1], u64::MAX), ["0"]);
        assert_eq!(removed(&[0, half, 1, half, half], u64::MAX), ["1", "2"]);
    }

    #[test]
    fn on_a_small_disk_half_of_the_space_is_left() {
        assert_eq!(removed(&[10, 10, 10], 30), [""; 0]);
        assert_eq!(removed(&[10, 10, 10], 29), ["0"]);
        assert_eq!(removed(&[10, 10, 10], 0), ["0", "1"]);
    }

    #[test]
    fn the_configured_limit_counts() {
        let removed = |configured| excess(sizes(&[10, 10, 10]), configured, u64::MAX).logs;
        assert_eq!(removed(30), [""; 0]);
        assert_eq!(removed(29), ["0"]);
        assert_eq!(removed(0), ["0", "1", "2"]);
    }

    #[test]
    fn the_number_of_pods_is_limited() {
        let all = vec![0; MOST_PODS + 2];
        let excess = excess(sizes(&all), KEPT_LOGS_LIMIT, u64::MAX);
        assert_eq!(excess.pods, ["0", "1"]);
        assert_eq!(excess.logs, [""; 0]);
    }
}
