//! Decides which revision has the current template, and which revisions are surplus.

use std::sync::Arc;

use serde_json::Value;

use super::revision::Revision;

/// The revision for the current template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    /// The newest revision has the template.
    Keep(Arc<Revision>),
    /// An older revision has the template. It gets this number and becomes the newest: a rollback.
    Renumber(Arc<Revision>, i64),
    /// No revision has the template. A revision must be created with this number.
    Create(i64),
}

/// Chooses the revision with the given data from revisions that are sorted from the
/// oldest to the newest.
pub(crate) fn choose(revisions: &[Arc<Revision>], data: &Value) -> Choice {
    let newest = revisions.last().map_or(0, |newest| newest.number);
    let next = newest.max(0).saturating_add(1);
    let mut equal = revisions.iter().rev();
    match equal.find(|revision| revision.data == *data) {
        None => Choice::Create(next),
        Some(found) if revisions.last().is_some_and(|newest| newest == found) => {
            Choice::Keep(found.clone())
        }
        Some(found) => Choice::Renumber(found.clone(), next),
    }
}

/// The effect of revisions in use on the limit of old revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Live {
    /// Revisions in use count, but are kept, as for DaemonSets.
    Counts,
    /// Revisions in use do not count, as for StatefulSets.
    Ignored,
}

/// Returns the oldest revisions that are not in use, so that only `limit` remain. The
/// revisions are sorted from the oldest to the newest.
pub(crate) fn surplus(
    revisions: &[Arc<Revision>],
    limit: usize,
    counting: Live,
    is_live: impl Fn(&Revision) -> bool,
) -> Vec<Arc<Revision>> {
    let unused = || revisions.iter().filter(|revision| !is_live(revision));
    let total = match counting {
        Live::Counts => revisions.len(),
        Live::Ignored => unused().count(),
    };
    unused()
        .take(total.saturating_sub(limit))
        .cloned()
        .collect()
}
