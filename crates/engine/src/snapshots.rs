//! Old states that were asked for, kept while their history is: a list over
//! many pages finds its state again, and it is worked out once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::object::Objects;

/// States kept for each kind, at most: lists under way at the same time.
const MOST: usize = 8;

/// Old states of a kind, shared by all snapshots of its table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshots(Arc<Mutex<Vec<(u64, Objects)>>>);

impl Snapshots {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Objects)>> {
        // A vector of complete entries is never half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a revision.
    pub(crate) fn find(&self, revision: u64) -> Option<Objects> {
        let kept = self.lock();
        let found = kept.iter().find(|(at, _)| *at == revision);
        found.map(|(_, objects)| objects.clone())
    }

    /// Keeps a state; the one kept longest goes when there are too many.
    pub(crate) fn keep(&self, revision: u64, objects: &Objects) {
        let mut kept = self.lock();
        if kept.iter().any(|(at, _)| *at == revision) {
            return;
        }
        if kept.len() == MOST {
            kept.remove(0);
        }
        kept.push((revision, objects.clone()));
    }

    /// Lets go of what is older than the history.
    pub(crate) fn forget(&self, compacted: u64) {
        self.lock().retain(|(at, _)| *at >= compacted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_states_are_kept_as_long_as_their_history() {
        let snapshots = Snapshots::default();
        (0..20).for_each(|revision| snapshots.keep(revision, &Objects::new()));
        assert!(snapshots.find(11).is_none());
        assert!(snapshots.find(12).is_some());
        snapshots.forget(15);
        assert!(snapshots.find(14).is_none());
        assert!(snapshots.find(15).is_some());
    }
}
