//! Watchers read at their own pace, and must have received exactly the events of the history.

use longshore_engine::{Engine, Error, Watch, WatchEvent, WatchRequest, WatchStart};
use tokio::{sync::watch, task::JoinHandle};

use super::{
    body::request,
    history::History,
    kind::{ApiVersion, Key, Kind, known},
    model_object::ModelObject,
    operation::{Call, Operation, Pace, Scope, Start},
    plain::{ends, list, selects},
};

/// A notification that a watcher received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notification {
    Added(Key, ModelObject),
    Modified(Key, ModelObject),
    Deleted(Key, ModelObject),
    /// A bookmark: all events up to this version have been sent.
    UpTo(u64),
    /// The bookmark at the end of the initial events.
    Initial(u64),
}

impl Notification {
    /// The notification of an event for a watcher of a kind in an API version.
    pub fn of(event: &WatchEvent, kind: Kind, api_version: ApiVersion) -> Self {
        let both = |object| known(kind, api_version, object);
        match event {
            WatchEvent::Added(object) => {
                let (key, model_object) = both(object);
                Self::Added(key, model_object)
            }
            WatchEvent::Modified(object) => {
                let (key, model_object) = both(object);
                Self::Modified(key, model_object)
            }
            WatchEvent::Deleted(object) => {
                let (key, model_object) = both(object);
                Self::Deleted(key, model_object)
            }
            WatchEvent::Unfiltered { .. } => unreachable!("no kind has a conversion webhook"),
            WatchEvent::Bookmark(version) => Self::UpTo(*version),
            WatchEvent::InitialEventsEnd(version) => Self::Initial(*version),
        }
    }
}

/// The reason why a watch ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Events that it had not read were trimmed.
    Expired,
    /// The kind was no longer served.
    KindGone,
    /// The watch never started, because the kind was not served.
    Unserved,
}

/// A watch request for a scope.
pub fn watch_request(scope: &Scope, api_version: ApiVersion, since: Option<u64>) -> WatchRequest {
    let list = request(scope, api_version);
    WatchRequest {
        namespace: list.namespace,
        labels: list.labels,
        fields: list.fields,
        bookmarks: true,
        ..WatchRequest::of(
            list.kind,
            since.map_or(WatchStart::Latest, WatchStart::After),
        )
    }
}

/// A watcher and everything it received.
#[derive(Debug)]
pub struct WatcherRecord {
    scope: Scope,
    api_version: ApiVersion,
    /// The version after which it starts; `None` to start with the current state.
    since: Option<u64>,
    /// The newest revision before and after the start.
    before: u64,
    after: u64,
    received: Vec<Notification>,
    end: Option<End>,
}

/// Starts a watch, which reads until `over` is set, and then until the last event.
pub fn start(
    engine: &Engine,
    call: &Call,
    over: watch::Receiver<bool>,
) -> Option<JoinHandle<WatcherRecord>> {
    let Operation::Watch { scope, start, pace } = &call.operation else {
        return None;
    };
    let before = engine.revision();
    let since = match start {
        Start::Ago(ago) => Some(before.saturating_sub(u64::from(*ago)).max(1)),
        Start::Now | Start::Initial => None,
    };
    let request = WatchRequest {
        initial_events: *start == Start::Initial,
        ..watch_request(scope, call.api_version, since)
    };
    let watch = engine.watch(&request);
    let mut watched = WatcherRecord {
        scope: scope.clone(),
        api_version: call.api_version,
        since,
        before,
        after: engine.revision(),
        received: Vec::new(),
        end: None,
    };
    match watch {
        Ok(watch) => Some(tokio::spawn(watched.read(watch, *pace, over))),
        Err(error) => {
            watched.stop(&error);
            Some(tokio::spawn(async { watched }))
        }
    }
}

impl WatcherRecord {
    async fn read(mut self, mut watch: Watch, pace: Pace, mut over: watch::Receiver<bool>) -> Self {
        let mut count = 0_u32;
        loop {
            if pace == Pace::Idle && over.wait_for(|over| *over).await.is_err() {
                break;
            }
            let next = tokio::select! {
                biased;
                next = watch.next() => next,
                _ = over.wait_for(|over| *over) => break,
            };
            if self.record(next.map(Some)).is_none() {
                return self;
            }
            count += 1;
            if pace == Pace::Pausing && count.is_multiple_of(3) {
                tokio::task::yield_now().await;
                if self.bookmark(&mut watch).is_none() {
                    return self;
                }
            }
        }
        // There are no more writes: all remaining events are available at once.
        while self.record(watch.try_next()).is_some() {}
        if self.end.is_none() {
            self.bookmark(&mut watch);
        }
        self
    }

    /// Records how the watch ended.
    fn stop(&mut self, error: &Error) {
        self.end = Some(match error {
            Error::Expired { .. } => End::Expired,
            Error::KindGone(_) => End::KindGone,
            Error::NotFound(_) => End::Unserved,
            error => panic!("{error}: {self:?}"),
        });
    }

    /// Records an event; `None` if no event is available.
    fn record(&mut self, next: Result<Option<WatchEvent>, Error>) -> Option<()> {
        match next {
            Ok(event) => {
                let notification = Notification::of(&event?, self.scope.kind, self.api_version);
                self.received.push(notification);
                Some(())
            }
            Err(error) => {
                self.stop(&error);
                None
            }
        }
    }

    fn bookmark(&mut self, watch: &mut Watch) -> Option<()> {
        match watch.bookmark() {
            Ok(0) => {}
            Ok(version) => self.received.push(Notification::UpTo(version)),
            Err(error) => {
                self.stop(&error);
                return None;
            }
        }
        Some(())
    }

    /// Compares the received events with the history.
    pub fn check(&self, history: &History) -> Result<(), String> {
        let received: Vec<&Notification> = self
            .received
            .iter()
            .filter(|one| !matches!(one, Notification::UpTo(_)))
            .collect();
        let from = match self.since {
            Some(since) if since < history.start => return Ok(()),
            Some(since) => since..=since,
            None => self.before..=self.after,
        };
        let mut problem = None;
        for from in from {
            let expected = self.expected(history, from);
            match self.fits(history, from, &expected, &received) {
                Ok(()) => return self.check_bookmarks(history.end()),
                Err(why) => {
                    problem.get_or_insert(format!("{why}: {self:#?}\nexpected: {expected:#?}"));
                }
            }
        }
        Err(problem.unwrap_or_default())
    }

    /// Returns true if the received events equal the events of the history from a revision on.
    fn fits(
        &self,
        history: &History,
        from: u64,
        expected: &[(u64, Notification)],
        received: &[&Notification],
    ) -> Result<(), &'static str> {
        let sent = expected.iter().map(|(_, notification)| notification);
        if !sent.take(received.len()).eq(received.iter().copied()) {
            return Err("the events differ from the history");
        }
        // The position of the watcher: at its last event, or before the next one.
        let position = match received.len().checked_sub(1) {
            Some(last) => expected[last].0,
            None => from,
        };
        let next = expected.get(received.len()).map(|(revision, _)| *revision);
        let kind = self.scope.kind;
        let is_there = |revision: &u64| history.is_served(kind, self.api_version, *revision);
        match self.end {
            None if next.is_some() => Err("events are missing"),
            None if !is_there(&history.end()) => {
                Err("the watch did not report that the kind is not served")
            }
            None => Ok(()),
            Some(End::Expired) if history.may_expire(kind, position, history.end()) => Ok(()),
            Some(End::Expired) => Err("expired without reason"),
            Some(End::Unserved) if !(self.before..=self.after).all(|at| is_there(&at)) => Ok(()),
            Some(End::Unserved) => Err("the kind is served"),
            Some(End::KindGone) => {
                let mut steps = history.steps_after(from);
                let ended = steps.any(|(_, step)| ends(step));
                let again = steps.any(|(_, step)| step.key.kind == Kind::Definition);
                let until = next.unwrap_or(history.end() + 1);
                if (ended && again) || !(position.max(from)..until).all(|at| is_there(&at)) {
                    Ok(())
                } else {
                    Err("the kind is served")
                }
            }
        }
    }

    /// All events from a revision on, with their revisions.
    fn expected(&self, history: &History, from: u64) -> Vec<(u64, Notification)> {
        let mut expected = Vec::new();
        let kind = self.scope.kind;
        if self.since.is_none() && history.is_served(kind, self.api_version, from) {
            let state = list(history.state(from), &self.scope);
            let added = state
                .into_iter()
                .map(|(key, model_object)| (from, Notification::Added(key, model_object)));
            expected.extend(added);
            if self
                .received
                .iter()
                .any(|one| matches!(one, Notification::Initial(_)))
            {
                expected.push((from, Notification::Initial(from)));
            }
        }
        for (revision, step) in history.steps_after(from) {
            if kind == Kind::Shoe && ends(step) {
                // Later events belong to another kind of the same name.
                break;
            }
            let (key, object) = (step.key.clone(), step.event_object.clone());
            let before = step
                .before
                .as_ref()
                .filter(|model_object| selects(&self.scope, &key, model_object));
            let after = !step.gone && selects(&self.scope, &key, &object);
            let notification = match (before, after) {
                (None, true) => Notification::Added(key, object),
                (Some(_), true) => Notification::Modified(key, object),
                (Some(_), false) if step.gone => Notification::Deleted(key, object),
                (Some(before), false) => {
                    let version = object.version;
                    let before = before.clone();
                    Notification::Deleted(key, ModelObject { version, ..before })
                }
                (None, false) => continue,
            };
            expected.push((revision, notification));
        }
        expected
    }

    /// A bookmark comes after all events up to its version, and before all others. The last
    /// bookmark has the last version.
    fn check_bookmarks(&self, end: u64) -> Result<(), String> {
        let mut promised = 0;
        let mut is_initial = self.since.is_none();
        for notification in &self.received {
            let is_in_order = match notification {
                Notification::UpTo(version) | Notification::Initial(version) => {
                    let is_in_order = *version >= promised;
                    promised = *version;
                    is_initial = false;
                    is_in_order
                }
                Notification::Added(_, model_object) if is_initial => {
                    promised = promised.max(model_object.version);
                    true
                }
                Notification::Added(_, model_object)
                | Notification::Modified(_, model_object)
                | Notification::Deleted(_, model_object) => {
                    let is_in_order = model_object.version > promised;
                    is_initial = false;
                    promised = model_object.version;
                    is_in_order
                }
            };
            if !is_in_order {
                return Err(format!("late event: {notification:?} of {self:#?}"));
            }
        }
        if self.end.is_some() || self.received.last() == Some(&Notification::UpTo(end)) {
            Ok(())
        } else {
            Err(format!("the last bookmark is missing: {self:#?}"))
        }
    }
}
