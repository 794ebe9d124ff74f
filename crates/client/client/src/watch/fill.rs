//! Reads the current state of all objects at the start of a watch: with a watch list if the
//! server supports it, otherwise page by page.
//!
//! Watch lists exist since Kubernetes 1.27 and are enabled by default since 1.34. The
//! version does not show whether a server supports them, because they can be disabled. The
//! client tries one per cluster and remembers the result.

use std::{sync::Arc, time::Duration};

use super::request::request;
use crate::{
    error::{Error, Result},
    kind::Object,
    transport::Lines,
    view::{View, read_consistent},
};
use longshore_snapshots::Snapshot;

/// A server that sends a watch list pauses for less than this time, and no longer than a
/// watch may be silent.
const QUIET: Duration = Duration::from_secs(5);
/// The annotation with which a server marks the end of the initial events.
const END: [&str; 3] = ["metadata", "annotations", "k8s.io/initial-events-end"];
/// Pages are smaller than a stream's, because two pages are in memory in addition to the objects
/// that are kept.
const PAGE: u32 = 100;
const EVENT: &str = "an initial event of a watch";

/// The form of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Objects as received.
    Whole,
    /// Without `managedFields`, each in its own buffer.
    Compact,
}

/// All objects and their resource version, and the watch that continues from there, if it is
/// already open.
pub(crate) struct Filled {
    pub(crate) snapshots: Vec<Arc<Snapshot>>,
    pub(crate) version: String,
    pub(crate) lines: Option<Lines>,
}

/// The result of a watch list.
enum Outcome {
    Filled(Filled),
    /// The server does not support watch lists.
    Refused,
    /// The watch list was interrupted.
    Broken,
}

/// Reads all objects.
pub(crate) async fn fill<K: Object>(view: &View<K>, keep: Keep) -> Result<Filled> {
    let known = &view.cluster().shared.watch_lists;
    if known.are_refused() {
        return by_pages(view, keep).await;
    }
    match by_watch(view, keep).await? {
        Outcome::Filled(filled) => {
            known.set_working();
            Ok(filled)
        }
        Outcome::Broken => by_pages(view, keep).await,
        Outcome::Refused => {
            let filled = by_pages(view, keep).await?;
            // Recorded only now: if both ways are rejected, there is another reason.
            known.set_refused();
            Ok(filled)
        }
    }
}

async fn by_pages<K: Object>(view: &View<K>, keep: Keep) -> Result<Filled> {
    let (snapshots, version) = read_consistent(view.clone(), PAGE, |item| match keep {
        Keep::Whole => item.snapshot().clone(),
        Keep::Compact => item.snapshot().compact(),
    })
    .await?;
    Ok(Filled {
        snapshots,
        version,
        lines: None,
    })
}

async fn by_watch<K: Object>(view: &View<K>, keep: Keep) -> Result<Outcome> {
    let mut call = request(view)?
        .with("sendInitialEvents", "true")
        .with("resourceVersionMatch", "NotOlderThan");
    if view.cached {
        call = call.with("resourceVersion", "0");
    }
    let quiet = QUIET.min(view.cluster().transport.timing().watch_idle);
    let mut lines = match view.cluster().send(&call).await {
        Ok(response) => Lines::new(view.cluster().transport.clone(), &call, response)?,
        Err(error) if matches!(error.code(), Some(400 | 422)) => return Ok(Outcome::Refused),
        Err(error) => return Err(error),
    };
    let mut snapshots = Vec::new();
    loop {
        let line = match tokio::time::timeout(quiet, lines.next()).await {
            Ok(Ok(Some(line))) => line,
            Ok(Err(Error::Closed)) => return Err(Error::Closed),
            Ok(_) => return Ok(Outcome::Broken),
            // The server ignored the parameter: it sent the current objects and waits for
            // changes.
            Err(_) => return Ok(Outcome::Refused),
        };
        let Ok((kind, object)) = longshore_snapshots::watch_line(&line, EVENT) else {
            return Ok(Outcome::Broken);
        };
        let snapshot = Snapshot::parse_part(&object, EVENT)
            .unwrap_or_else(|fault| Snapshot::unreadable(object, fault));
        match kind {
            "ADDED" => snapshots.push(match keep {
                Keep::Whole => Arc::new(snapshot.detached()),
                Keep::Compact => snapshot.compact(),
            }),
            "BOOKMARK" if is_end(&snapshot) => {
                let version = snapshot.version().to_owned();
                return Ok(Outcome::Filled(Filled {
                    snapshots,
                    version,
                    lines: Some(lines),
                }));
            }
            "ERROR" => return Ok(Outcome::Broken),
            // The changes have begun, but no bookmark ended the initial events.
            _ => return Ok(Outcome::Refused),
        }
    }
}

fn is_end(bookmark: &Snapshot) -> bool {
    let end = bookmark.part(&END).ok().flatten();
    end == Some(br#""true""#) && !bookmark.version().is_empty()
}
