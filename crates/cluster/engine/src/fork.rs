//! Snapshots of all objects and kinds, from which engines start or to which they
//! return. The state is a persistent data structure: a snapshot takes the time
//! of a few pointer copies, and shares its memory with the engines.

use std::sync::Arc;

use longshore_model::time;

use crate::{
    Options,
    kinds::{Entry, Kinds},
    state::State,
};

/// The objects and kinds of an engine at a point in time. Cheap to clone.
///
/// ```
/// use longshore_engine::{Engine, Options};
///
/// let engine = Engine::open(Options::default())?;
/// let snapshot = engine.snapshot();
/// let other = Engine::open_at(&snapshot, Options::default())?;
/// assert_eq!(other.revision(), engine.revision());
/// # Ok::<(), longshore_engine::OpenError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot(Arc<State>);

impl Snapshot {
    pub(crate) fn new(state: Arc<State>) -> Self {
        Self(state)
    }

    /// The revision at which the snapshot was taken.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// Returns the start of another cluster: the objects of the snapshot with a new creation time
    /// and new UIDs. The objects must not refer to each other by UID. `None` if the time cannot be
    /// replaced, because its year has more than four digits.
    #[must_use]
    pub fn renewed(&self, options: &Options) -> Option<Self> {
        let mut state = State::clone(&self.0);
        let created = time::seconds(options.clock.now());
        state.replace_objects(|object| object.renewed(&options.ids.uid(), &created))?;
        Some(Self(Arc::new(state)))
    }

    /// Returns the state for a new engine. Its watches are independent of those
    /// of other engines.
    pub(crate) fn detached(&self) -> State {
        let mut state = State::clone(&self.0);
        let entries = self.0.kinds.entries();
        let entries = entries.map(|entry| with_revisions(entry, Arc::default()));
        state.kinds = Arc::new(Kinds::from_entries(entries.collect(), self.0.kinds.epoch()));
        state.defers_cleanup = false;
        state
    }

    /// Returns the state that follows `now` in the same engine. All history
    /// expires, so that clients list again.
    pub(crate) fn following(&self, now: &State) -> State {
        let mut state = State::clone(&self.0);
        let (before, after) = (&self.0.kinds, &now.kinds);
        let mut entries: Vec<Arc<Entry>> = before
            .entries()
            .enumerate()
            .map(|(index, entry)| {
                let known = after.entries().nth(index);
                let same = known
                    .filter(|known| known.uid == entry.uid && known.store_name == entry.store_name);
                // The watches of another kind at this index end.
                let revisions = same.map_or_else(Arc::default, |known| known.revisions.clone());
                with_revisions(entry, revisions)
            })
            .collect();
        for entry in after.entries().skip(entries.len()) {
            let mut ended = Entry::clone(entry);
            ended.is_live = false;
            entries.push(Arc::new(ended));
            state.add_table();
        }
        let epoch = before.epoch().max(after.epoch()).saturating_add(1);
        state.kinds = Arc::new(Kinds::from_entries(entries, epoch));
        state.revision = now.revision.max(self.0.revision) + 1;
        state.creates_accounts = now.creates_accounts;
        state.defers_cleanup = now.defers_cleanup;
        state.expire();
        state
    }
}

fn with_revisions(
    entry: &Arc<Entry>,
    revisions: Arc<tokio::sync::watch::Sender<u64>>,
) -> Arc<Entry> {
    let mut entry = Entry::clone(entry);
    entry.revisions = revisions;
    Arc::new(entry)
}
