//! Parts of the start that write objects. Webhooks and policies can refuse these writes, for
//! example because a webhook's server ended with the last cluster. The API server starts
//! nevertheless, so that they can be changed, and the parts try again, like the components of
//! Kubernetes.

use std::time::Duration;

use longshore_client::Error as ClientError;
use longshore_node::{Error as NodeError, NodeAgent};
use tokio::{sync::oneshot, task::JoinSet, time::Instant};

/// Time that a start waits for all its writes. The start continues without writes that take longer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The first and the maximum delay before another attempt. Each failure doubles the delay.
const DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// The writes of one start.
pub(crate) struct Writes {
    deadline: Instant,
    /// Writes that were refused, as sentences for the user.
    pub(crate) warnings: Vec<String>,
}

/// The result of a part of the start.
pub(crate) enum Part<T> {
    Done(T),
    /// The part is repeated until it succeeds.
    Later(oneshot::Receiver<T>),
}

impl Writes {
    pub(crate) fn new() -> Self {
        Self {
            deadline: Instant::now() + TIMEOUT,
            warnings: Vec::new(),
        }
    }

    /// Repeats work until it succeeds. Waits only for the first attempt; the others run in a task.
    pub(crate) async fn part<T, F, W>(
        &mut self,
        tasks: &mut JoinSet<()>,
        what: &'static str,
        work: F,
    ) -> Part<T>
    where
        F: Fn() -> W + Send + 'static,
        W: Future<Output = Result<T, String>> + Send,
        T: Send + 'static,
    {
        let (done, mut result) = oneshot::channel();
        let (refused, refusal) = oneshot::channel();
        tasks.spawn(async move {
            let (mut refused, mut delay) = (Some(refused), DELAYS.0);
            loop {
                match work().await {
                    Ok(value) => {
                        // The cluster may have stopped.
                        let _ = done.send(value);
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(error, "cannot write the {what}; trying again");
                        if let Some(refused) = refused.take() {
                            let _ = refused.send(error);
                        }
                    }
                }
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(DELAYS.1);
            }
        });
        let error = tokio::select! {
            biased;
            Ok(value) = &mut result => return Part::Done(value),
            Ok(error) = refusal => error,
            () = tokio::time::sleep_until(self.deadline) => "it takes too long".to_owned(),
        };
        self.warnings.push(format!(
            "the cluster cannot write the {what}: {error}; it tries again, so remove or mend the \
             webhook or policy that refuses them"
        ));
        Part::Later(result)
    }

    /// Runs work that a controller repeats if it fails.
    pub(crate) async fn once(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<(), ClientError>>,
    ) {
        match tokio::time::timeout_at(self.deadline, work).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot write the {what}; a controller tries again");
            }
            Err(_) => tracing::warn!("writing the {what} takes long; a controller tries again"),
        }
    }
}

/// Starts the agent of the nodes. A refusal by the API is an error that can be retried, as a
/// kubelet does; the inner result is an error if the agent cannot run on this machine.
pub(crate) async fn nodes(
    options: longshore_node::Options,
) -> Result<Result<NodeAgent, NodeError>, String> {
    match NodeAgent::start(options).await {
        Err(
            error @ (NodeError::Register { .. } | NodeError::EarlierNodes(_) | NodeError::Watch(_)),
        ) => Err(error.to_string()),
        started => Ok(started),
    }
}

/// Converts the error of a write to an error that can be retried.
pub(crate) fn refused(error: ClientError) -> String {
    error.to_string()
}
