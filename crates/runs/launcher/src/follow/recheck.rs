//! Lists the objects of a run before its end is decided, because its watches may lag behind. For
//! example, a task that is given up may have started, or a Job may fail because of a pod that is
//! not seen yet.

use std::time::Duration;

use longshore_client::{Cluster, Error, Item, kinds};
use tokio::time::timeout;

use crate::run::Run;

/// The timeout for listing all objects.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// A requested list, and the validity of the last one.
#[derive(Debug, Default)]
pub(super) struct Recheck {
    is_requested: bool,
    is_listed: bool,
}

/// The current objects of a run.
pub(super) struct Listed {
    pub(super) pods: Vec<Item<kinds::Pod>>,
    pub(super) jobs: Vec<Item<kinds::Job>>,
}

impl Recheck {
    /// Returns true if the state comes from a list, without later changes.
    pub(super) fn is_listed(&self) -> bool {
        self.is_listed
    }

    pub(super) fn request(&mut self) {
        self.is_requested = true;
    }

    /// Returns true if a list was requested. Resets the request.
    pub(super) fn take_request(&mut self) -> bool {
        std::mem::take(&mut self.is_requested)
    }

    /// Records that all listed objects have been processed.
    pub(super) fn processed(&mut self) {
        *self = Self {
            is_requested: false,
            is_listed: true,
        };
    }

    /// Records that the state may change again.
    pub(super) fn expire(&mut self) {
        self.is_listed = false;
    }
}

/// The answer to the request for a list.
pub(super) enum Answer {
    Listed(Listed),
    /// The permission to list was withdrawn, so only the watches are left.
    Forbidden,
    /// The cluster does not answer, or reports that it is unavailable.
    Away,
}

/// Lists all Jobs and then all pods. A pod that a Job counts as ended has ended in the later list.
pub(super) async fn list(cluster: &Cluster, run: &Run) -> Answer {
    match timeout(LIST_TIMEOUT, listed(cluster, run)).await {
        Ok(Ok(listed)) => Answer::Listed(listed),
        Ok(Err(error)) if error.is_forbidden() => Answer::Forbidden,
        Ok(Err(error)) => {
            tracing::debug!(%error, "cannot list the run's objects again");
            Answer::Away
        }
        Err(_) => Answer::Away,
    }
}

async fn listed(cluster: &Cluster, run: &Run) -> Result<Listed, Error> {
    let jobs = run.jobs(cluster)?.list().await?.items;
    let pods = run.pods(cluster)?.list().await?.items;
    Ok(Listed { pods, jobs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_answers_the_request_and_is_valid_until_the_state_changes() {
        let mut recheck = Recheck::default();
        assert!(!recheck.is_listed());
        recheck.request();
        assert!(recheck.take_request());
        assert!(!recheck.take_request());
        recheck.request();
        recheck.processed();
        assert!(recheck.is_listed() && !recheck.take_request());
        recheck.expire();
        assert!(!recheck.is_listed());
    }
}
