//! Creates the objects of a plan: all of them, or none.

mod bundle;
mod cleanup;
mod error;
mod jobset;
mod notifier;
mod owner;
mod stamp;
mod submission;

use longshore_client::Cluster;
use tokio::sync::oneshot;

use crate::{owner::Owner, plan::Plan, run::Run, runs};
pub use error::SubmitError;
use submission::Submission;

/// Creates the objects of a plan. If one fails, the objects created before it are deleted. The
/// first Job, CronJob or JobSet owns the other objects, so that they are deleted with it. The
/// objects that notify about the run are created before it. All objects except a bundle record the
/// current user as their [`Owner`](crate::Owner).
///
/// If the future is dropped, no objects are left: a pending request cannot be cancelled, so it
/// completes in the background, and its objects are removed.
///
/// # Errors
/// The error contains the object and the cluster's error.
pub async fn submit(cluster: &Cluster, plan: &Plan) -> Result<Run, SubmitError> {
    let (sender, receiver) = oneshot::channel();
    let (cluster, mut plan) = (cluster.clone(), plan.clone());
    tokio::spawn(async move {
        let result = create(&cluster, &mut plan).await;
        if let Err(Ok(run)) = sender.send(result)
            && let Err(error) = runs::remove(&cluster, &run).await
        {
            tracing::warn!(%error, run = %run.name, "cannot remove an abandoned run");
        }
    });
    // The task sends its result, unless the runtime shuts down.
    receiver
        .await
        .map_err(|_| longshore_client::Error::Closed)?
}

async fn create(cluster: &Cluster, plan: &mut Plan) -> Result<Run, SubmitError> {
    plan.mark_owner(&Owner::current(cluster).await?);
    let mut submission = Submission::new(cluster, plan);
    match submission.create().await {
        Ok(()) => Ok(submission.run),
        Err(error) => {
            submission.undo().await;
            Err(error)
        }
    }
}
