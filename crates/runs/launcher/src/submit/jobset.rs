//! Waits for the Jobs of a JobSet.

use std::time::Duration;

use super::{SubmitError, submission::Submission};

/// The maximum time that JobSet's controller may take to create Jobs, and the interval between
/// checks.
const JOBS_TIMEOUT: Duration = Duration::from_secs(30);
const JOBS_POLL_INTERVAL: Duration = Duration::from_millis(200);

impl Submission<'_> {
    /// Waits for the first Job of JobSet's controller, because a run without Jobs does not exist.
    /// Does not wait for all Jobs, because a short run may have ended and deleted its service
    /// roles.
    pub(super) async fn jobs_of_set(&self) -> Result<(), SubmitError> {
        let made = async {
            loop {
                let jobs = self.run.jobs(self.cluster)?.list().await?;
                if !jobs.items.is_empty() {
                    return Ok(());
                }
                tokio::time::sleep(JOBS_POLL_INTERVAL).await;
            }
        };
        match tokio::time::timeout(JOBS_TIMEOUT, made).await {
            Ok(made) => made,
            Err(_) => Err(SubmitError::NoJobs {
                name: self.plan.run.to_string(),
                seconds: JOBS_TIMEOUT.as_secs(),
            }),
        }
    }
}
