//! Watches. Each watch has a position in the event log of its kind and reads at its own pace. A
//! slow watch does not retain memory: if the log is truncated past its position, the watch expires.

use std::{collections::VecDeque, ops::Bound, sync::Arc, task::Poll};

use tokio::sync::watch;

use crate::{
    Error, Object, Subject, WatchEvent, WatchRequest, WatchStart,
    kinds::KindId,
    select::Selection,
    state::{Event, State, too_large},
    view::View,
    writer::Shared,
};

/// Maximum number of events that one read returns.
const MAX_EVENTS_PER_READ: usize = 256;
/// Maximum number of events that one read examines, matching or not.
const MAX_EVENTS_EXAMINED: usize = 4096;

/// A running watch.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    kind: KindId,
    /// The uid of the kind's definition, to detect that another kind reuses the
    /// index.
    uid: Box<str>,
    view: Arc<View>,
    selection: Selection,
    revisions: watch::Receiver<u64>,
    /// Events up to this revision have been read.
    position: u64,
    /// Events up to this revision have been delivered.
    delivered: u64,
    pending: VecDeque<(u64, WatchEvent)>,
    /// Initial objects that are not delivered yet.
    initial: std::vec::IntoIter<Arc<Object>>,
    end_of_initial: Option<u64>,
    /// The last read left unexamined events in the log.
    has_unexamined_events: bool,
}

impl Watch {
    pub(crate) fn start(shared: Arc<Shared>, request: &WatchRequest) -> Result<Self, Error> {
        // Subscribe before reading the state, so that no event in between is
        // missed.
        let (kind, uid, revisions) = {
            let state = shared.current.load();
            let kind = state.kinds.id(&request.kind)?;
            let entry = state.kinds.entry(kind);
            (kind, entry.uid.clone(), entry.revisions.subscribe())
        };
        let state = shared.current.load_full();
        let (now, view) = state.kinds.resolve(&request.kind)?;
        if now != kind || state.kinds.entry(kind).uid != uid {
            // The kind was recreated in between. Report it as missing, because it was missing a
            // moment ago.
            return Err(Error::NotFound(Subject::new(&request.kind, "")));
        }
        let view = view.clone();
        let selection = Selection::new(
            &view,
            request.namespace.as_deref(),
            &request.labels,
            &request.fields,
        )?;
        let from_state = request.initial_events || request.since == WatchStart::Latest;
        let (position, initial) = match request.since {
            WatchStart::After(asked) if !from_state => {
                check_age(&state, kind, asked)?;
                (asked, Vec::new())
            }
            WatchStart::After(asked) if asked > state.revision => {
                return Err(too_large(asked, state.revision));
            }
            _ => (state.revision, initial(&state, kind, &selection)),
        };
        let end_of_initial = (request.initial_events && request.bookmarks).then_some(position);
        Ok(Self {
            shared,
            kind,
            uid,
            view,
            selection,
            revisions,
            position,
            delivered: if from_state { 0 } else { position },
            pending: VecDeque::new(),
            initial: initial.into_iter(),
            end_of_initial,
            has_unexamined_events: false,
        })
    }

    /// Returns the next event. Cancel safe: dropping the future does not lose an event.
    ///
    /// # Errors
    /// [`Error::Expired`] if the watch was too slow; [`Error::Storage`] if the
    /// engine is closed.
    pub async fn next(&mut self) -> Result<WatchEvent, Error> {
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            if self.has_unexamined_events {
                yield_now().await;
                continue;
            }
            if self.revisions.changed().await.is_err() {
                // If another kind has taken the index, the read reports it.
                let closed = || Error::Storage("the engine is closed".to_owned());
                return self.try_next()?.ok_or_else(closed);
            }
        }
    }

    /// Returns the next event if it is available immediately.
    ///
    /// # Errors
    /// The errors of [`Watch::next`].
    pub fn try_next(&mut self) -> Result<Option<WatchEvent>, Error> {
        if let Some(object) = self.initial.next() {
            let object = self.view.present(&object);
            return Ok(Some(match self.selection.awaits_conversion() {
                true => WatchEvent::Unfiltered {
                    before: None,
                    after: Some(object),
                },
                false => WatchEvent::Added(object),
            }));
        }
        if let Some(revision) = self.end_of_initial.take() {
            self.delivered = revision;
            return Ok(Some(WatchEvent::InitialEventsEnd(revision)));
        }
        if self.pending.is_empty() {
            self.delivered = self.delivered.max(self.position);
            self.read()?;
        }
        Ok(self.pending.pop_front().map(|(revision, event)| {
            self.delivered = revision;
            event
        }))
    }

    /// The revision up to which all events have been delivered, for use in a bookmark. 0 while
    /// initial events are pending, because a bookmark cannot be sent then.
    ///
    /// # Errors
    /// The errors of [`Watch::next`].
    pub fn bookmark(&mut self) -> Result<u64, Error> {
        if self.initial.len() == 0 && self.end_of_initial.is_none() && self.pending.is_empty() {
            self.read()?;
            if self.pending.is_empty() {
                self.delivered = self.delivered.max(self.position);
            }
        }
        Ok(self.delivered)
    }

    /// Ends the watch if the kind or version is no longer served, and adopts a
    /// changed kind.
    fn check_kind(&mut self, state: &State) -> Result<(), Error> {
        let entry = state.kinds.entry(self.kind);
        let info = &self.view.info;
        // Events are served in the same version by two groups.
        let same = |view: &&Arc<View>| {
            (&view.info.gvk.group, &view.info.gvk.version) == (&info.gvk.group, &info.gvk.version)
        };
        match entry.views.iter().find(same) {
            Some(view) if entry.is_live && entry.uid == self.uid => {
                self.view = view.clone();
                Ok(())
            }
            // Deliver the last deletions first, or report that they are
            // compacted.
            _ if entry.uid == self.uid && self.position < self.newest(state) => Ok(()),
            _ => Err(Error::KindGone(Subject::new(info, ""))),
        }
    }

    fn newest(&self, state: &State) -> u64 {
        let table = state.table(self.kind);
        table.newest().max(table.compacted)
    }

    /// Reads events until some match or the newest revision is reached.
    fn read(&mut self) -> Result<(), Error> {
        self.has_unexamined_events = false;
        // Mark the revision as seen before reading, so that any later
        // publication wakes the next wait.
        self.revisions.borrow_and_update();
        let state = self.shared.current.load_full();
        self.check_kind(&state)?;
        if self.position >= state.revision {
            return Ok(());
        }
        let table = state.table(self.kind);
        let Some(events) = table.events_after(self.position) else {
            return Err(expired(self.position, table.compacted));
        };
        for (looked_at, event) in events.enumerate() {
            self.has_unexamined_events = looked_at == MAX_EVENTS_EXAMINED;
            if self.has_unexamined_events {
                return Ok(());
            }
            self.position = event.revision;
            if let Some(selected) = select(&self.selection, &self.view, event) {
                self.pending.push_back((event.revision, selected));
                if self.pending.len() == MAX_EVENTS_PER_READ {
                    return Ok(());
                }
            }
        }
        self.position = state.revision;
        Ok(())
    }
}

/// Yields to other tasks.
async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn initial(state: &State, kind: KindId, selection: &Selection) -> Vec<Arc<Object>> {
    state
        .table(kind)
        .objects
        .range::<_, str>((Bound::Included(selection.prefix.as_str()), Bound::Unbounded))
        .map(|(_, object)| object)
        .take_while(|object| object.key().starts_with(&selection.prefix))
        .filter(|object| selection.matches(object))
        .cloned()
        .collect()
}

fn check_age(state: &State, kind: KindId, asked: u64) -> Result<(), Error> {
    let compacted = state.table(kind).compacted;
    if asked < compacted {
        Err(expired(asked, compacted))
    } else {
        Ok(())
    }
}

fn expired(asked: u64, compacted: u64) -> Error {
    Error::Expired {
        message: format!("too old resource version: {asked} ({compacted})"),
        cursor: None,
    }
}

/// Converts an event to the event that a watch with a selection reports.
fn select(selection: &Selection, view: &View, event: &Event) -> Option<WatchEvent> {
    let was = event
        .before
        .as_ref()
        .filter(|before| selection.matches(before));
    if selection.awaits_conversion() {
        return unfiltered(selection, view, event, was);
    }
    if event.deleted {
        return was.map(|_| WatchEvent::Deleted(view.present(&event.after)));
    }
    match (was, selection.matches(&event.after)) {
        (None, true) => Some(WatchEvent::Added(view.present(&event.after))),
        (Some(_), true) => Some(WatchEvent::Modified(view.present(&event.after))),
        (Some(before), false) => Some(WatchEvent::Deleted(
            view.present(&Arc::new(before.with_revision(event.revision))),
        )),
        (None, false) => None,
    }
}

/// Converts an event for a watch whose receiver evaluates further terms of the selector.
fn unfiltered(
    selection: &Selection,
    view: &View,
    event: &Event,
    before: Option<&Arc<Object>>,
) -> Option<WatchEvent> {
    let after = (!event.deleted && selection.matches(&event.after)).then_some(&event.after);
    if before.is_none() && after.is_none() {
        return None;
    }
    Some(WatchEvent::Unfiltered {
        before: before.map(|before| view.present(&Arc::new(before.with_revision(event.revision)))),
        after: after.map(|after| view.present(after)),
    })
}
