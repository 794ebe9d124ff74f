//! Settings for retries, backoff and timeouts.

use std::time::Duration;

use super::retry::Backoff;

/// Settings for the retries, the backoff and the timeouts of a
/// [`Cluster`](crate::Cluster)'s requests.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use std::time::Duration;
/// use longshore_client::Timing;
/// let mut timing = Timing::default();
/// timing.retries = 1;
/// timing.max_backoff = Duration::from_secs(1);
/// let hasty = cluster.clone().with_timing(timing);
/// assert!(hasty.nodes().list().await?.items.is_empty());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Timing {
    /// The maximum number of retries of a request if the server is busy or the connection is
    /// lost. The default is 6.
    pub retries: u32,
    /// The delay before the first retry, which doubles with each further retry. Each delay
    /// is shortened at random by up to half. The default is 200 ms.
    pub initial_backoff: Duration,
    /// The maximum delay before a retry. The default is 20 seconds.
    pub max_backoff: Duration,
    /// A watch reconnects if it receives nothing for this time, not even a bookmark, because
    /// its connection may be lost. The default is 150 seconds.
    pub watch_idle: Duration,
    /// The timeout that a watch requests from the server, after which the watch continues on
    /// a new connection. This spreads the load over the API servers. The default is 290
    /// seconds.
    pub watch_connection: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            retries: 6,
            initial_backoff: Duration::from_millis(200),
            max_backoff: Duration::from_secs(20),
            watch_idle: Duration::from_secs(150),
            watch_connection: Duration::from_secs(290),
        }
    }
}

impl Timing {
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff {
            initial: self.initial_backoff,
            max: self.max_backoff,
        }
    }
}
