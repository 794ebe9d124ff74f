//! How a bundle is delivered: settings, callbacks, and how long its URL is valid.

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use crate::bundle::Progress;

/// The longest that a signed URL can be valid, with S3 as with the others.
pub(super) const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The shortest that is asked for: a run without a follower may wait long for
/// a free node.
const SHORTEST: Duration = Duration::from_secs(24 * 3600);

/// How much of a bundle has been sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that have arrived.
    pub bytes: u64,
    /// Bytes of the whole bundle.
    pub total: u64,
    /// Those of the bytes that have arrived which an earlier try sent.
    pub earlier: u64,
}

/// How to deliver, beside what and where.
pub struct DeliverOptions {
    /// Settings of the object store beside the environment's and over them,
    /// named as variables: `AWS_ENDPOINT_URL`, `AZURE_STORAGE_ACCOUNT_NAME`, ….
    pub settings: Vec<(String, String)>,
    /// How long pods can fetch by a signed URL; see [`validity`].
    pub validity: Duration,
    /// A folder in which to remember how far uploads have come: what a process
    /// sent that was killed, or that lost the store, the next one does not send
    /// again.
    pub cache: Option<PathBuf>,
    /// Called as the bundle is packed; never, when it is there already, or was packed
    /// before.
    pub packing: Arc<dyn Fn(Progress) + Send + Sync>,
    /// Called as the bundle is sent; never, when it is there already.
    pub progress: Arc<dyn Fn(Sent) + Send + Sync>,
    /// Ends when the bundle is not wanted any more: then what was sent of it is
    /// taken back, which dropping the delivery cannot do: that leaves it as a killed
    /// process does.
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

/// How long the pods of a run may fetch its bundle: until they have started, and
/// as long as a task may be started again, for which `timeout` is the run's; at least
/// a day, and no more than the seven days that stores allow.
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
