//! What a watch does between events: connect, resume, list anew, back off.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use longshore_model::Status;
use rand::Rng;

use super::WatchEvent;
use crate::{
    decode,
    error::{Error, Result},
    item::List,
    kinds::Kind,
    stream::Lines,
    transport,
    view::View,
};

/// So many malformed lines in a row are borne, each on a new connection.
const MALFORMED: u32 = 3;
/// So many refused credentials in a row are borne.
const UNAUTHORIZED: u32 = 1;

pub(super) struct Session<K: Kind> {
    view: View<K>,
    /// Everything up to here has been told.
    version: String,
    lines: Option<Lines>,
    /// The history since `version` is lost.
    expired: bool,
    /// Failures in a row, for the back-off.
    failures: u32,
    malformed: u32,
    unauthorized: u32,
}

impl<K: Kind> Session<K> {
    /// Connects; a version that has expired is no error yet.
    pub(super) async fn open(view: View<K>, version: String) -> Result<Self> {
        let mut session = Self {
            view,
            version,
            lines: None,
            expired: false,
            failures: 0,
            malformed: 0,
            unauthorized: 0,
        };
        match session.connect().await {
            Err(error) if error.is_gone() => session.expired = true,
            outcome => outcome?,
        }
        Ok(session)
    }

    async fn connect(&mut self) -> Result<()> {
        let cluster = self.view.cluster();
        // Spread, so that many watches do not come back at once.
        let wanted = cluster.timing.watch_connection;
        let seconds = wanted
            .mul_f64(rand::rng().random_range(0.8..=1.0))
            .as_secs()
            .max(1);
        let call = self
            .view
            .selection()
            .with("watch", "true")
            .with("allowWatchBookmarks", "true")
            .with("resourceVersion", self.version.as_str())
            .with("timeoutSeconds", seconds.to_string());
        let response = cluster.send(&call).await?;
        self.lines = Some(Lines::new(cluster.clone(), response));
        Ok(())
    }

    /// The next event; an error is final.
    pub(super) async fn next(&mut self) -> Result<WatchEvent<K>> {
        loop {
            let outcome = if self.expired {
                self.resync().await.map(Some)
            } else if self.lines.is_none() {
                self.connect().await.map(|()| None)
            } else {
                self.read().await
            };
            match outcome {
                Ok(Some(event)) => {
                    (self.failures, self.malformed, self.unauthorized) = (0, 0, 0);
                    return Ok(event);
                }
                Ok(None) => {}
                Err(error) => self.recover(error).await?,
            }
        }
    }

    async fn resync(&mut self) -> Result<WatchEvent<K>> {
        let list: List<K> = self.view.list().await?;
        self.version.clone_from(&list.version);
        self.expired = false;
        self.lines = None;
        Ok(WatchEvent::Resync(list))
    }

    /// One line: an event, or nothing to tell of.
    async fn read(&mut self) -> Result<Option<WatchEvent<K>>> {
        let Some(lines) = &mut self.lines else {
            return Ok(None);
        };
        let idle = self.view.cluster().timing.watch_idle;
        match tokio::time::timeout(idle, lines.next()).await {
            Err(_) => {
                tracing::debug!(?idle, "a silent watch connects anew");
                self.lines = None;
                Ok(None)
            }
            Ok(Ok(None)) => {
                self.lines = None;
                // A server that only ever ends connections must not be hurried.
                let pause = self.view.cluster().timing.backoff().wait(self.failures);
                self.failures += 1;
                tokio::time::sleep(pause.min(Duration::from_secs(5))).await;
                Ok(None)
            }
            Ok(Err(error)) => Err(error),
            Ok(Ok(Some(line))) => self.event(&line),
        }
    }

    fn event(&mut self, line: &Bytes) -> Result<Option<WatchEvent<K>>> {
        let what = "an event of a watch";
        let (kind, object) = decode::watch_line(line, what)?;
        if kind == "ERROR" {
            let status: Status = serde_json::from_slice(object)
                .map_err(|error| Error::decode("an error event of a watch", error))?;
            let code = StatusCode::from_u16(status.code);
            let code = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let request = format!("WATCH {}", self.view.collection_path());
            return Err(Error::from_status(request, transport::status(code, object)));
        }
        // A copy: an item that is kept must not keep the connection's buffer.
        let parts = decode::part(&Bytes::copy_from_slice(object), what)?;
        let item = self.view.wrap(parts);
        if item.version().is_empty() {
            return Err(Error::decode(what, "metadata.resourceVersion is missing"));
        }
        self.version = item.version().to_owned();
        Ok(match kind {
            "ADDED" => Some(WatchEvent::Added(item)),
            "MODIFIED" => Some(WatchEvent::Modified(item)),
            "DELETED" => Some(WatchEvent::Deleted(item)),
            _ => {
                // A bookmark, or something newer: the version is what counts.
                self.failures = 0;
                None
            }
        })
    }

    /// Prepares another try after an error, or passes it on.
    async fn recover(&mut self, error: Error) -> Result<()> {
        self.lines = None;
        if error.is_gone() && !self.expired {
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
            return Err(error);
        }
        let pause = self.view.cluster().timing.backoff().wait(self.failures);
        tracing::warn!(%error, ?pause, "a watch is interrupted and goes on");
        self.failures = self.failures.saturating_add(1);
        let closed = self.view.cluster().shared.closed.clone();
        tokio::select! {
            () = closed.cancelled() => Err(Error::Closed),
            () = tokio::time::sleep(pause.max(error.retry_after().unwrap_or_default())) => Ok(()),
        }
    }
}

/// Whether trying again may help.
fn is_passing(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } => true,
        error => error.is_gone() || error.code().is_some_and(|code| code == 429 || code >= 500),
    }
}
