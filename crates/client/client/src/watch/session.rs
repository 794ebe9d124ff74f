//! The connections of a watch: connect, resume, list again, back off.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use longshore_model::Status;

use super::{
    fill::{Filled, Keep, fill},
    request::request,
};
use crate::{
    error::{Error, Result},
    kind::Object,
    transport::{self, Lines},
    view::View,
};
use longshore_snapshots::Snapshot;

/// The maximum number of malformed lines in a row, each on a new connection.
const MALFORMED: u32 = 3;
/// The maximum number of rejected credentials in a row.
const UNAUTHORIZED: u32 = 1;
const EVENT: &str = "an event of a watch";

/// An event. The texts are slices of the connection's buffer.
pub(crate) enum Step {
    Added(Snapshot),
    Modified(Snapshot),
    Deleted(Snapshot),
    /// The resource version expired.
    Expired,
}

pub(crate) struct Session<K: Object> {
    view: View<K>,
    /// The resource version of the last event.
    version: String,
    lines: Option<Lines>,
    /// True if `version` has expired.
    expired: bool,
    /// Failures in a row, for the back-off.
    failures: u32,
    malformed: u32,
    unauthorized: u32,
}

impl<K: Object> Session<K> {
    /// Returns a session without a version.
    pub(crate) fn new(view: View<K>) -> Self {
        Self {
            view,
            version: String::new(),
            lines: None,
            expired: true,
            failures: 0,
            malformed: 0,
            unauthorized: 0,
        }
    }

    /// Connects. An expired version is not an error yet.
    pub(super) async fn open(view: View<K>, version: String) -> Result<Self> {
        let mut session = Self::new(view);
        session.go_on(version, None);
        match session.connect().await {
            Err(error) if error.is_expired() => session.expired = true,
            outcome => outcome?,
        }
        Ok(session)
    }

    pub(crate) fn view(&self) -> &View<K> {
        &self.view
    }

    /// Continues from `version`.
    pub(crate) fn go_on(&mut self, version: String, lines: Option<Lines>) {
        (self.version, self.lines, self.expired) = (version, lines, false);
        self.heard();
    }

    /// Discards the resource version: a watch cannot continue from it.
    pub(crate) fn forget(&mut self) {
        (self.lines, self.expired) = (None, true);
        self.heard();
    }

    fn heard(&mut self) {
        (self.failures, self.malformed, self.unauthorized) = (0, 0, 0);
    }

    async fn connect(&mut self) -> Result<()> {
        let call = request(&self.view)?.with("resourceVersion", self.version.as_str());
        let cluster = self.view.cluster();
        let response = cluster.send(&call).await?;
        self.lines = Some(Lines::new(cluster.transport.clone(), &call, response)?);
        Ok(())
    }

    /// Returns the next step. An error is final.
    pub(crate) async fn step(&mut self) -> Result<Step> {
        loop {
            let outcome = if self.expired {
                return Ok(Step::Expired);
            } else if self.lines.is_none() {
                self.connect().await.map(|()| None)
            } else {
                self.read().await
            };
            match outcome {
                Ok(Some(step)) => {
                    self.heard();
                    return Ok(step);
                }
                Ok(None) => {}
                Err(error) => self.recover(error).await?,
            }
        }
    }

    /// After [`Step::Expired`]: reads the current state of all objects and its version. The
    /// session continues from there.
    pub(crate) async fn refill(&mut self, keep: Keep) -> Result<(Vec<Arc<Snapshot>>, String)> {
        loop {
            match fill(&self.view, keep).await {
                Ok(Filled {
                    snapshots,
                    version,
                    lines,
                }) => {
                    self.go_on(version.clone(), lines);
                    return Ok((snapshots, version));
                }
                Err(error) => self.recover(error).await?,
            }
        }
    }

    /// Handles one line. Returns `None` if it is not an event.
    async fn read(&mut self) -> Result<Option<Step>> {
        let Some(lines) = &mut self.lines else {
            return Ok(None);
        };
        let idle = self.view.cluster().transport.timing().watch_idle;
        match tokio::time::timeout(idle, lines.next()).await {
            Err(_) => {
                tracing::debug!(?idle, "a silent watch connects anew");
                self.lines = None;
                Ok(None)
            }
            Ok(Ok(None)) => {
                self.lines = None;
                // Do not reconnect at once to a server that only ends connections.
                let pause = self
                    .view
                    .cluster()
                    .transport
                    .timing()
                    .backoff()
                    .wait(self.failures);
                self.failures += 1;
                tokio::time::sleep(pause.min(Duration::from_secs(5))).await;
                Ok(None)
            }
            Ok(Err(error)) => Err(error),
            Ok(Ok(Some(line))) => self.event(&line),
        }
    }

    fn event(&mut self, line: &Bytes) -> Result<Option<Step>> {
        let (kind, object) = longshore_snapshots::watch_line(line, EVENT)?;
        if kind == "ERROR" {
            let status: Status = serde_json::from_slice(&object)
                .map_err(|error| Error::decode("an error event of a watch", error))?;
            let code = StatusCode::from_u16(status.code);
            let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let request = format!("WATCH {}", self.view.collection_path());
            return Err(Error::from_status(
                request,
                transport::status(code, &object),
            ));
        }
        let snapshot = Snapshot::parse_part(&object, EVENT)?;
        if snapshot.version().is_empty() {
            return Err(Error::decode(EVENT, "metadata.resourceVersion is missing"));
        }
        snapshot.version().clone_into(&mut self.version);
        Ok(match kind {
            "ADDED" => Some(Step::Added(snapshot)),
            "MODIFIED" => Some(Step::Modified(snapshot)),
            "DELETED" => Some(Step::Deleted(snapshot)),
            _ => {
                // A bookmark or a newer type of event: only the version matters.
                self.failures = 0;
                None
            }
        })
    }

    /// Prepares a retry after an error, or returns the error.
    async fn recover(&mut self, error: Error) -> Result<()> {
        self.lines = None;
        if error.is_expired() && !self.expired {
            self.expired = true;
            return Ok(());
        }
        let count = match &error {
            Error::Decode { .. } => {
                self.malformed += 1;
                self.malformed <= MALFORMED
            }
            error if error.is_unauthorized() => {
                self.unauthorized += 1;
                self.unauthorized <= UNAUTHORIZED
            }
            error => is_passing(error),
        };
        if !count {
            return Err(match error {
                Error::Decode { what, problem } if what == EVENT => {
                    let path = self.view.collection_path();
                    Error::decode(format!("{what} of {path}"), problem)
                }
                error => error,
            });
        }
        let pause = self
            .view
            .cluster()
            .transport
            .timing()
            .backoff()
            .wait(self.failures);
        tracing::warn!(%error, ?pause, "a watch is interrupted and goes on");
        self.failures = self.failures.saturating_add(1);
        let closed = self.view.cluster().transport.closed().clone();
        tokio::select! {
            () = closed.cancelled() => Err(Error::Closed),
            () = tokio::time::sleep(pause.max(asked(&error))) => Ok(()),
        }
    }
}

/// The pause that the server requests. It is limited, so that a server cannot stop a watch for
/// hours.
fn asked(error: &Error) -> Duration {
    let asked = error.retry_after().unwrap_or_default();
    asked.min(transport::MAX_RETRY_AFTER)
}

/// Returns true if a retry may help.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        error => error.is_expired() || error.code().is_some_and(|code| code == 429 || code >= 500),
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::StatusReason;

    use super::*;

    #[test]
    fn a_server_stops_a_watch_for_a_minute_at_most() {
        let busy = |seconds| {
            let mut status = Status::failure(StatusReason::TooManyRequests, "busy".to_owned());
            status.code = 429;
            status.details.get_or_insert_default().retry_after_seconds = seconds;
            Error::from_status("WATCH /api/v1/pods".to_owned(), status)
        };
        assert_eq!(asked(&busy(7)), Duration::from_secs(7));
        assert_eq!(asked(&busy(u32::MAX)), transport::MAX_RETRY_AFTER);
        assert_eq!(asked(&Error::Closed), Duration::ZERO);
    }
}
