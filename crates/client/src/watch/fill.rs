//! Everything as it is now, as the beginning of a watch: by a watch list where
//! the server has them, page by page elsewhere.
//!
//! Watch lists are of Kubernetes 1.27 and on by default since 1.34, but the version
//! does not show whether a server has them, for they can be switched off: one is
//! tried once per cluster, and the outcome is remembered.

use std::{sync::Arc, time::Duration};

use super::request::request;
use crate::{
    data::{self, Snapshot},
    error::{Error, Result},
    kind::Object,
    transport::Lines,
    view::{View, read_consistent},
};

/// A server that knows of watch lists does not pause so long in the middle, nor
/// longer than a watch may be silent.
const QUIET: Duration = Duration::from_secs(5);
/// Where a server marks the end of the initial events.
const END: [&str; 3] = ["metadata", "annotations", "k8s.io/initial-events-end"];
/// Pages are smaller than those of a stream: beside what is kept, two of them
/// are in memory.
const PAGE: u32 = 100;
const EVENT: &str = "an initial event of a watch";

/// In what form objects are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// As they came.
    Whole,
    /// Without `managedFields`, each in a buffer of its own.
    Compact,
}

/// Everything at a version, and the watch that goes on from there, if there is
/// one already.
pub(crate) struct Filled {
    pub(crate) snapshots: Vec<Arc<Snapshot>>,
    pub(crate) version: String,
    pub(crate) lines: Option<Lines>,
}

/// What came of a watch list.
enum Outcome {
    Filled(Filled),
    /// The server does not have them.
    Refused,
    /// It was interrupted.
    Broken,
}

/// Reads everything.
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
            // Only now: what both ways refuse is refused for another reason.
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
            // It sent what there is, as ever, and waits for changes.
            Err(_) => return Ok(Outcome::Refused),
        };
        let Ok((kind, object)) = data::watch_line(&line, EVENT) else {
            return Ok(Outcome::Broken);
        };
        let snapshot = Snapshot::part_of(&object, EVENT)
            .unwrap_or_else(|fault| Snapshot::broken(object, fault));
        match kind {
            "ADDED" => snapshots.push(match keep {
                Keep::Whole => Arc::new(snapshot.own()),
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
