//! Retries, back-off and timeouts of a cluster's requests.

use std::time::Duration;

use super::retry::Backoff;

/// Retries, back-off and timeouts of a [`Cluster`](crate::Cluster)'s requests.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::Timing;
/// let mut timing = Timing::default();
/// timing.retries = 1;
/// timing.longest_wait = Duration::from_secs(1);
/// let hasty = cluster.clone().with_timing(timing);
/// assert!(hasty.nodes().list().await?.items.is_empty());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Timing {
    /// How often a request is retried when the server is busy or the connection
    /// is lost.
    pub retries: u32,
    /// The first wait before a retry.
    pub first_wait: Duration,
    /// The longest wait before a retry.
    pub longest_wait: Duration,
    /// A watch that receives nothing for so long, not even a bookmark, reconnects:
    /// its connection may be dead.
    pub watch_idle: Duration,
    /// The server is asked to end a watch's connection after this time, which
    /// spreads load over servers; the watch continues over a new one.
    pub watch_connection: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            retries: 6,
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(20),
            watch_idle: Duration::from_secs(150),
            watch_connection: Duration::from_secs(290),
        }
    }
}

impl Timing {
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff {
            first: self.first_wait,
            most: self.longest_wait,
        }
    }
}
