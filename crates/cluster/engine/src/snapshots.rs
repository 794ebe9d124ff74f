//! Caches old states that lists requested, as long as their history is kept.
//! The pages of a list reuse the state, and it is computed only once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::Objects;

/// Maximum number of cached states per kind, which is the maximum number of concurrent lists that
/// benefit.
const MAX_SNAPSHOTS: usize = 8;

/// The cached states of a kind, shared by all snapshots of the kind's table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshots(Arc<Mutex<Vec<(u64, Objects)>>>);

impl Snapshots {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Objects)>> {
        // The vector contains only complete entries, so a poisoned lock is harmless.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state at a revision.
    pub(crate) fn find(&self, revision: u64) -> Option<Objects> {
        let kept = self.lock();
        let found = kept.iter().find(|(at, _)| *at == revision);
        found.map(|(_, objects)| objects.clone())
    }

    /// Caches a state. Evicts the oldest entry if the cache is full.
    pub(crate) fn insert(&self, revision: u64, objects: &Objects) {
        let mut kept = self.lock();
        if kept.iter().any(|(at, _)| *at == revision) {
            return;
        }
        if kept.len() == MAX_SNAPSHOTS {
            kept.remove(0);
        }
        kept.push((revision, objects.clone()));
    }

    /// Drops states that are older than the history.
    pub(crate) fn drop_before(&self, compacted: u64) {
        self.lock().retain(|(at, _)| *at >= compacted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_states_are_limited_and_expire_with_history() {
        let snapshots = Snapshots::default();
        (0..20).for_each(|revision| snapshots.insert(revision, &Objects::new()));
        assert!(snapshots.find(11).is_none());
        assert!(snapshots.find(12).is_some());
        snapshots.drop_before(15);
        assert!(snapshots.find(14).is_none());
        assert!(snapshots.find(15).is_some());
    }
}
