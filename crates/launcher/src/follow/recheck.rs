//! Lists the objects of a run before its end is decided, because its watches may lag behind: a task
//! that is given up may have started, a Job may fail for a pod that is not seen yet.

use std::time::Duration;

use longshore_client::{Cluster, Item, kinds};
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

    /// Whether a list was requested. Resets the request.
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

/// Lists all Jobs and then all pods; `None` if the cluster does not answer. A pod that a Job counts as
/// ended has ended in the later list.
pub(super) async fn list(cluster: &Cluster, run: &Run) -> Option<Listed> {
    let (pods, jobs) = (run.pods(cluster).ok()?, run.jobs(cluster).ok()?);
    let both = async {
        let jobs = jobs.list().await?;
        Ok((jobs, pods.list().await?))
    };
    let listed: Result<_, longshore_client::Error> = timeout(LIST_TIMEOUT, both).await.ok()?;
    match listed {
        Ok((jobs, pods)) => Some(Listed {
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
