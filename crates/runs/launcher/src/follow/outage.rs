//! Outages of the cluster: requests are repeated, and the outage is reported once.

use std::time::Duration;

use longshore_client::Error;
use longshore_diagnosis::explain::{Cause, Explanation};
use tokio::time::Instant;

/// The time that a cluster may be unreachable before a request fails.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval between attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// The time that a cluster may be unreachable before this is reported.
const REPORT_DELAY: Duration = Duration::from_secs(5);

/// Repeats a request while the cluster is unreachable, for up to a minute.
pub(super) async fn retry<T, F>(request: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let begin = Instant::now();
    loop {
        match request().await {
            Err(error) if is_retried(&error, begin.elapsed()) => {
                tracing::info!(%error, "the cluster does not answer; retrying");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            result => return result,
        }
    }
}

/// Returns true if a request that failed this long after the first attempt is repeated.
fn is_retried(error: &Error, elapsed: Duration) -> bool {
    error.is_unreachable() && elapsed < UNREACHABLE_TIMEOUT
}

/// True if the current outage was reported.
#[derive(Debug, Default)]
pub(super) struct Outage {
    is_reported: bool,
}

impl Outage {
    /// The report of an outage of this duration, once per outage.
    pub(super) fn report(&mut self, away: Duration) -> Option<Explanation> {
        let is_away = away > REPORT_DELAY;
        let is_new = is_away && !self.is_reported;
        self.is_reported = is_away;
        let remedy = "the run continues, and is followed again when the cluster answers";
        is_new.then(|| Explanation::new(Cause::ClusterAway, "the cluster does not answer", remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_reported_once() {
        let mut outage = Outage::default();
        let mut is_reported = |seconds| outage.report(Duration::from_secs(seconds)).is_some();
        let seen = [0, 5, 6, 7, 0, 6, 7].map(&mut is_reported);
        assert_eq!(seen, [false, false, true, false, false, true, false]);
    }

    #[test]
    fn an_unreachable_cluster_is_retried_for_a_minute() {
        let unreachable = Error::Unreachable {
            url: "https://example".into(),
            problem: "connection refused".into(),
        };
        let seconds = [0, 59, 60].map(Duration::from_secs);
        let retried = seconds.map(|elapsed| is_retried(&unreachable, elapsed));
        assert_eq!(retried, [true, true, false]);
        assert!(!is_retried(&Error::Closed, Duration::ZERO));
    }
}
