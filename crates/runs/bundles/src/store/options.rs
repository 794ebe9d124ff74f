//! Options of the delivery of a bundle: settings, callbacks, and the validity of its URL.

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use crate::bundle::Progress;

/// The maximum validity of a signed URL, for all services: seven days.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The minimum validity, because a run without a follower may wait long for a free node.
const SHORTEST: Duration = Duration::from_secs(24 * 3600);

/// The progress of an upload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// The number of uploaded bytes.
    pub bytes: u64,
    /// The size of the bundle in bytes.
    pub total: u64,
    /// The number of uploaded bytes that an earlier attempt sent.
    pub earlier: u64,
}

/// Options of a delivery.
pub struct DeliverOptions {
    /// Settings of the object store by variable name, which override the environment's settings:
    /// `AWS_ENDPOINT_URL`, `AZURE_STORAGE_ACCOUNT_NAME`, ….
    pub settings: Vec<(String, String)>,
    /// The validity of signed URLs. See [`validity`].
    pub validity: Duration,
    /// A cache folder for the progress of uploads. After a process is killed or loses the
    /// connection, the next one resumes its upload.
    pub cache: Option<PathBuf>,
    /// Called while the bundle is packed; never if it is already uploaded or packed.
    pub packing: Arc<dyn Fn(Progress) + Send + Sync>,
    /// Called while the bundle is uploaded; never if it is already uploaded.
    pub progress: Arc<dyn Fn(Sent) + Send + Sync>,
    /// A future that completes to stop the delivery. The uploaded parts are then removed.
    /// Dropping the delivery leaves them, like killing the process.
    pub stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Default for DeliverOptions {
    fn default() -> Self {
        Self {
            settings: Vec::new(),
            validity: SHORTEST,
            cache: None,
            packing: Arc::new(|_| {}),
            progress: Arc::new(|_| {}),
            stop: Box::pin(std::future::pending()),
        }
    }
}

impl fmt::Debug for DeliverOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeliverOptions")
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

/// The time for which the pods of a run may need to download its bundle: until they have started,
/// and while a task may be restarted, which the run's `timeout` limits. At least a day, and at most
/// the seven days that stores allow.
#[must_use]
pub fn validity(start_timeout: Duration, retries: u32, timeout: Option<Duration>) -> Duration {
    let again = match (retries, timeout) {
        (0, _) => Duration::ZERO,
        (_, Some(timeout)) => timeout,
        (_, None) => LONGEST,
    };
    start_timeout.saturating_add(again).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_valid_as_long_as_a_task_may_start() {
        let hour = |hours: u64| Duration::from_secs(hours * 3600);
        let hours = |start_timeout, retries, timeout: Option<u64>| {
            validity(start_timeout, retries, timeout.map(hour)).as_secs() / 3600
        };
        let minutes = Duration::from_secs(600);
        assert_eq!(hours(minutes, 0, None), 24);
        assert_eq!(hours(hour(2 * 24), 0, None), 48);
        assert_eq!(hours(hour(30 * 24), 0, None), 7 * 24);
        assert_eq!(hours(minutes, 1, None), 7 * 24);
        assert_eq!(hours(hour(1), 1, Some(36)), 37);
        assert_eq!(hours(minutes, 0, Some(36)), 24);
    }
}
