//! Watches: each has a position in its kind's log of events and reads on from
//! there at its own pace. A slow one keeps nothing alive; when the log has been
//! cut behind it, it ends as expired.

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

/// Events read from the log in one go.
const CHUNK: usize = 256;
/// Events looked at in one go, selected or not.
const LOOK: usize = 4096;

/// A running watch.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    kind: KindId,
    /// Of the kind's definition, to know when it is another's number.
    uid: Box<str>,
    view: Arc<View>,
    selection: Selection,
    news: watch::Receiver<u64>,
    /// Events up to here have been read.
    position: u64,
    /// Events up to here have been handed out.
    delivered: u64,
    waiting: VecDeque<(u64, WatchEvent)>,
    /// The first state, still to be told.
    initial: std::vec::IntoIter<Arc<Object>>,
    end_of_initial: Option<u64>,
    /// The last read left events that nobody has looked at.
    is_behind: bool,
}

impl Watch {
    pub(crate) fn start(shared: Arc<Shared>, request: &WatchRequest) -> Result<Self, Error> {
        // Subscribed before the state is read: an event between the two is seen.
        let (kind, uid, news) = {
            let state = shared.current.load();
            let kind = state.kinds.id(&request.kind)?;
            let entry = state.kinds.entry(kind);
            (kind, entry.uid.clone(), entry.news.subscribe())
        };
        let state = shared.current.load_full();
        let (now, view) = state.kinds.resolve(&request.kind)?;
        if now != kind || state.kinds.entry(kind).uid != uid {
            // Made anew in between: as if it had been asked for a moment ago.
            return Err(Error::NotFound(Subject::new(&request.kind, "")));
        }
        let view = view.clone();
        let selection = Selection::new(
            &request.kind,
            &view.facts,
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
            news,
            position,
            delivered: if from_state { 0 } else { position },
            waiting: VecDeque::new(),
            initial: initial.into_iter(),
            end_of_initial,
            is_behind: false,
        })
    }

    /// The next event. Cancel-safe: a dropped call loses nothing.
    ///
    /// # Errors
    /// [`Error::Expired`] when the watch was too slow; [`Error::Storage`] when
    /// the engine is closed.
    pub async fn next(&mut self) -> Result<WatchEvent, Error> {
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            if self.is_behind {
                give_way().await;
                continue;
            }
            if self.news.changed().await.is_err() {
                // Another kind has taken the place of this one; the read says so.
                let closed = || Error::Storage("the engine is closed".to_owned());
                return self.try_next()?.ok_or_else(closed);
            }
        }
    }

    /// The next event, if there is one already, and it is found at once.
    ///
    /// # Errors
    /// As [`Watch::next`].
    pub fn try_next(&mut self) -> Result<Option<WatchEvent>, Error> {
        if let Some(object) = self.initial.next() {
            return Ok(Some(WatchEvent::Added(self.view.present(&object))));
        }
        if let Some(revision) = self.end_of_initial.take() {
            self.delivered = revision;
            return Ok(Some(WatchEvent::InitialEventsEnd(revision)));
        }
        if self.waiting.is_empty() {
            self.delivered = self.delivered.max(self.position);
            self.read()?;
        }
        Ok(self.waiting.pop_front().map(|(revision, event)| {
            self.delivered = revision;
            event
        }))
    }

    /// The version up to which everything has been handed out; what a bookmark
    /// may say now. 0 while the initial events are still being told: then
    /// there is nothing to say.
    ///
    /// # Errors
    /// As [`Watch::next`].
    pub fn bookmark(&mut self) -> Result<u64, Error> {
        if self.initial.len() == 0 && self.end_of_initial.is_none() && self.waiting.is_empty() {
            self.read()?;
            if self.waiting.is_empty() {
                self.delivered = self.delivered.max(self.position);
            }
        }
        Ok(self.delivered)
    }

    /// Ends the watch of a kind or version that is served no longer; follows
    /// one that has changed.
    fn check_kind(&mut self, state: &State) -> Result<(), Error> {
        let entry = state.kinds.entry(self.kind);
        let info = &self.view.info;
        let same = |view: &&Arc<View>| view.info.gvk.version == info.gvk.version;
        match entry.views.iter().find(same) {
            Some(view) if entry.live && entry.uid == self.uid => {
                self.view = view.clone();
                Ok(())
            }
            // The last deletions are still told, or that they are forgotten.
            _ if entry.uid == self.uid && self.position < self.newest(state) => Ok(()),
            _ => Err(Error::KindGone(Subject::new(info, ""))),
        }
    }

    fn newest(&self, state: &State) -> u64 {
        let table = state.table(self.kind);
        table.newest().max(table.compacted)
    }

    /// Reads events until some are selected or the newest is reached.
    fn read(&mut self) -> Result<(), Error> {
        self.is_behind = false;
        // Marked first: what is published from here on wakes the next wait.
        self.news.borrow_and_update();
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
            self.is_behind = looked_at == LOOK;
            if self.is_behind {
                return Ok(());
            }
            self.position = event.revision;
            if let Some(selected) = select(&self.selection, &self.view, event) {
                self.waiting.push_back((event.revision, selected));
                if self.waiting.len() == CHUNK {
                    return Ok(());
                }
            }
        }
        self.position = state.revision;
        Ok(())
    }
}

/// Lets others have their turn.
async fn give_way() {
    let mut gave = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut gave, true) {
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

/// What an event is to those who watch a selection.
fn select(selection: &Selection, view: &View, event: &Event) -> Option<WatchEvent> {
    let was = event
        .before
        .as_ref()
        .filter(|before| selection.matches(before));
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
