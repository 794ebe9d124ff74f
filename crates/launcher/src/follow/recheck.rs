//! Lists the objects of a run again, because its watches may lag behind: before a task is given
//! up, it may have started, or a failed pod may exist.

use std::time::Duration;

use longshore_client::{Cluster, Item, kinds};
use tokio::time::{Instant, timeout};

use crate::run::Run;

/// The timeout for listing all objects.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a list of all objects stays valid.
const LIST_VALIDITY: Duration = Duration::from_secs(3);

/// Whether a list is requested, and when the objects were last listed.
#[derive(Debug, Default)]
pub(super) struct Recheck {
    is_requested: bool,
    listed_at: Option<Instant>,
}

/// The current objects of a run.
pub(super) struct Listed {
    pub(super) pods: Vec<Item<kinds::Pod>>,
    pub(super) jobs: Vec<Item<kinds::Job>>,
}

impl Recheck {
    /// Whether the objects were listed recently.
    pub(super) fn is_listed(&self, now: Instant) -> bool {
        self.listed_at
            .is_some_and(|listed_at| now.duration_since(listed_at) < LIST_VALIDITY)
    }

    pub(super) fn request(&mut self) {
        self.is_requested = true;
    }

    /// Whether a list was requested. Resets the request.
    pub(super) fn take_request(&mut self) -> bool {
        std::mem::take(&mut self.is_requested)
    }

    /// Records that all listed objects have been processed.
    pub(super) fn processed(&mut self, now: Instant) {
        *self = Self {
            is_requested: false,
            listed_at: Some(now),
        };
    }
}

/// Lists all pods and Jobs; `None` if the cluster does not answer.
pub(super) async fn list(cluster: &Cluster, run: &Run) -> Option<Listed> {
    let (pods, jobs) = (run.pods(cluster).ok()?, run.jobs(cluster).ok()?);
    let both = async { futures::try_join!(pods.list(), jobs.list()) };
    match timeout(LIST_TIMEOUT, both).await.ok()? {
        Ok((pods, jobs)) => Some(Listed {
            pods: pods.items,
            jobs: jobs.items,
        }),
        Err(error) => {
            tracing::debug!(%error, "cannot list the run's objects again");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_valid_for_a_while_and_answers_the_request() {
        let now = Instant::now();
        let mut recheck = Recheck::default();
        assert!(!recheck.is_listed(now));
        recheck.request();
        assert!(recheck.take_request());
        assert!(!recheck.take_request());
        recheck.request();
        recheck.processed(now);
        assert!(!recheck.take_request());
        let ages = [
            Duration::ZERO,
            LIST_VALIDITY - Duration::from_nanos(1),
            LIST_VALIDITY,
        ];
        assert_eq!(
            ages.map(|age| recheck.is_listed(now + age)),
            [true, true, false]
        );
    }
}
