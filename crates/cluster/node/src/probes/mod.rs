//! Probes of containers: their actions, their schedules, and their thresholds. The pods' tasks run
//! the probes.

mod action;
mod grpc;
mod http;
mod schedule;
mod tcp;
mod tls;

pub(crate) use action::{Action, duration_text, resolve_action, resolve_http};
pub(crate) use http::{HttpError, HttpGet, get};
pub(crate) use schedule::{Kind, Schedule};
pub(crate) use tls::NOT_TLS;

use crate::{
    sandbox::Spawner,
    streams::{self, CollectError, Container},
};

/// Maximum number of bytes of a command's output, and of a response's body, as
/// in the kubelet.
pub(crate) const MAX_OUTPUT: usize = 10 * 1024;

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    /// Counts as a success, but is reported by an event.
    Warning(String),
    Failure(String),
}

/// A probe that could not be performed; its result does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbeError {
    /// The kubelet's name of the result: `unknown` or `failure`.
    pub(crate) state: &'static str,
    pub(crate) message: String,
}

impl ProbeError {
    fn unknown(message: impl Into<String>) -> Self {
        Self {
            state: "unknown",
            message: message.into(),
        }
    }
}

/// Performs a probe once.
pub(crate) async fn perform(
    action: &Action,
    timeout: std::time::Duration,
    spawner: &Spawner,
    container: &Container,
) -> Result<Outcome, ProbeError> {
    match action {
        Action::Invalid(message) => Err(ProbeError::unknown(message.as_str())),
        Action::Exec(command) => execute(command, timeout, spawner, container).await,
        Action::Http(request) => http::probe(request, timeout).await,
        Action::Tcp { host, port } => Ok(tcp::probe(host, *port, timeout).await),
        Action::Grpc {
            host,
            port,
            service,
        } => Ok(grpc::probe(host, *port, service, timeout).await),
    }
}

async fn execute(
    command: &[String],
    timeout: std::time::Duration,
    spawner: &Spawner,
    container: &Container,
) -> Result<Outcome, ProbeError> {
    let running = streams::collect(spawner, container, command, MAX_OUTPUT);
    match tokio::time::timeout(timeout, running).await {
        Ok(Ok(collected)) if collected.code == 0 => Ok(Outcome::Success),
        Ok(Ok(collected)) => Ok(Outcome::Failure(collected.output)),
        Ok(Err(CollectError(message))) => Err(ProbeError::unknown(message)),
        Err(_) => Ok(Outcome::Failure(format!(
            "command timed out: {:?} timed out after {}",
            command.join(" "),
            duration_text(timeout)
        ))),
    }
}

#[cfg(test)]
mod tests;
