//! Watchers: read at their own pace, and must have been told exactly what the
//! history says.

use longshore_engine::{Engine, Error, Watch, WatchEvent, WatchRequest, WatchStart};
use tokio::{sync::watch, task::JoinHandle};

use super::{
    body::request,
    history::History,
    kind::{Key, Kind, Via, known},
    operation::{Call, Operation, Pace, Scope, Start},
    plain::{ends, list, selects},
    thing::Thing,
};

/// What a watcher was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Added(Key, Thing),
    Modified(Key, Thing),
    Deleted(Key, Thing),
    /// All events up to here have been told.
    UpTo(u64),
    /// The initial events are told.
    Initial(u64),
}

impl Told {
    /// What an event says to one who watches a kind in a version.
    pub fn of(event: &WatchEvent, kind: Kind, via: Via) -> Self {
        let both = |object| known(kind, via, object);
        match event {
            WatchEvent::Added(object) => {
                let (key, thing) = both(object);
                Self::Added(key, thing)
            }
            WatchEvent::Modified(object) => {
                let (key, thing) = both(object);
                Self::Modified(key, thing)
            }
            WatchEvent::Deleted(object) => {
                let (key, thing) = both(object);
                Self::Deleted(key, thing)
            }
            WatchEvent::Bookmark(version) => Self::UpTo(*version),
            WatchEvent::InitialEventsEnd(version) => Self::Initial(*version),
        }
    }
}

/// How a watch ended before all was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// What it had not read was forgotten.
    Expired,
    /// Its kind was not served any more.
    KindGone,
    /// It never began, as its kind was not served.
    Unserved,
}

/// A watch of what a scope takes.
pub fn watch_request(scope: &Scope, via: Via, since: Option<u64>) -> WatchRequest {
    let list = request(scope, via);
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

/// A watcher, and all it was told.
#[derive(Debug)]
pub struct Watched {
    scope: Scope,
    via: Via,
    /// After this version; `None` with the state first.
    since: Option<u64>,
    /// The newest revision before and after it was started.
    before: u64,
    after: u64,
    told: Vec<Told>,
    end: Option<End>,
}

/// Starts a watch; it is read until `over` says so, and to the end then.
pub fn start(
    engine: &Engine,
    call: &Call,
    over: watch::Receiver<bool>,
) -> Option<JoinHandle<Watched>> {
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
        ..watch_request(scope, call.via, since)
    };
    let watch = engine.watch(&request);
    let mut watched = Watched {
        scope: scope.clone(),
        via: call.via,
        since,
        before,
        after: engine.revision(),
        told: Vec::new(),
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

impl Watched {
    async fn read(mut self, mut watch: Watch, pace: Pace, mut over: watch::Receiver<bool>) -> Self {
        let mut count = 0_u32;
        loop {
            if pace == Pace::Asleep && over.wait_for(|over| *over).await.is_err() {
                break;
            }
            let next = tokio::select! {
                biased;
                next = watch.next() => next,
                _ = over.wait_for(|over| *over) => break,
            };
            if self.hear(next.map(Some)).is_none() {
                return self;
            }
            count += 1;
            if pace == Pace::Halting && count.is_multiple_of(3) {
                tokio::task::yield_now().await;
                if self.bookmark(&mut watch).is_none() {
                    return self;
                }
            }
        }
        // Nobody writes any more: all there is can be had at once.
        while self.hear(watch.try_next()).is_some() {}
        if self.end.is_none() {
            self.bookmark(&mut watch);
        }
        self
    }

    /// Notes how the watch ended.
    fn stop(&mut self, error: &Error) {
        self.end = Some(match error {
            Error::Expired { .. } => End::Expired,
            Error::KindGone(_) => End::KindGone,
            Error::NotFound(_) => End::Unserved,
            error => panic!("{error}: {self:?}"),
        });
    }

    /// Notes an event; `None` when there is none.
    fn hear(&mut self, next: Result<Option<WatchEvent>, Error>) -> Option<()> {
        match next {
            Ok(event) => {
                let told = Told::of(&event?, self.scope.kind, self.via);
                self.told.push(told);
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
            Ok(version) => self.told.push(Told::UpTo(version)),
            Err(error) => {
                self.stop(&error);
                return None;
            }
        }
        Some(())
    }

    /// Holds what was told against what happened.
    pub fn check(&self, history: &History) -> Result<(), String> {
        let told: Vec<&Told> = self
            .told
            .iter()
            .filter(|told| !matches!(told, Told::UpTo(_)))
            .collect();
        let from = match self.since {
            Some(since) if since < history.start => return Ok(()),
            Some(since) => since..=since,
            None => self.before..=self.after,
        };
        let mut problem = None;
        for from in from {
            let expected = self.expected(history, from);
            match self.fits(history, from, &expected, &told) {
                Ok(()) => return self.check_bookmarks(history.end()),
                Err(why) => {
                    problem.get_or_insert(format!("{why}: {self:#?}\nexpected: {expected:#?}"));
                }
            }
        }
        Err(problem.unwrap_or_default())
    }

    /// Whether what was told is what happened from a revision on.
    fn fits(
        &self,
        history: &History,
        from: u64,
        expected: &[(u64, Told)],
        told: &[&Told],
    ) -> Result<(), &'static str> {
        let said = expected.iter().map(|(_, told)| told);
        if !said.take(told.len()).eq(told.iter().copied()) {
            return Err("told otherwise than it happened");
        }
        // It had come this far, and no further than to the next event.
        let position = match told.len().checked_sub(1) {
            Some(last) => expected[last].0,
            None => from,
        };
        let next = expected.get(told.len()).map(|(revision, _)| *revision);
        let kind = self.scope.kind;
        let is_there = |revision: &u64| history.is_served(kind, self.via, *revision);
        match self.end {
            None if next.is_some() => Err("not all is told"),
            None if !is_there(&history.end()) => Err("the kind is gone, and nobody said so"),
            None => Ok(()),
            Some(End::Expired) if history.may_forget(kind, position, history.end()) => Ok(()),
            Some(End::Expired) => Err("forgotten without reason"),
            Some(End::Unserved) if !(self.before..=self.after).all(|at| is_there(&at)) => Ok(()),
            Some(End::Unserved) => Err("the kind is there"),
            Some(End::KindGone) => {
                let mut steps = history.steps_after(from);
                let ended = steps.any(|(_, step)| ends(step));
                let again = steps.any(|(_, step)| step.key.kind == Kind::Definition);
                let until = next.unwrap_or(history.end() + 1);
                if (ended && again) || !(position.max(from)..until).all(|at| is_there(&at)) {
                    Ok(())
                } else {
                    Err("the kind is there")
                }
            }
        }
    }

    /// All there was to tell from a revision on, and the revisions of it.
    fn expected(&self, history: &History, from: u64) -> Vec<(u64, Told)> {
        let mut expected = Vec::new();
        let kind = self.scope.kind;
        if self.since.is_none() && history.is_served(kind, self.via, from) {
            let state = list(history.state(from), &self.scope);
            let added = state
                .into_iter()
                .map(|(key, thing)| (from, Told::Added(key, thing)));
            expected.extend(added);
            if self
                .told
                .iter()
                .any(|told| matches!(told, Told::Initial(_)))
            {
                expected.push((from, Told::Initial(from)));
            }
        }
        for (revision, step) in history.steps_after(from) {
            if kind == Kind::Shoe && ends(step) {
                // What comes after is of another kind of the same name.
                break;
            }
            let (key, told) = (step.key.clone(), step.told.clone());
            let before = step
                .before
                .as_ref()
                .filter(|thing| selects(&self.scope, &key, thing));
            let after = !step.gone && selects(&self.scope, &key, &told);
            let told = match (before, after) {
                (None, true) => Told::Added(key, told),
                (Some(_), true) => Told::Modified(key, told),
                (Some(_), false) if step.gone => Told::Deleted(key, told),
                (Some(before), false) => {
                    let version = told.version;
                    let before = before.clone();
                    Told::Deleted(key, Thing { version, ..before })
                }
                (None, false) => continue,
            };
            expected.push((revision, told));
        }
        expected
    }

    /// A bookmark comes behind all events up to it, and before all others; the
    /// last one says that all is told.
    fn check_bookmarks(&self, end: u64) -> Result<(), String> {
        let mut promised = 0;
        let mut is_initial = self.since.is_none();
        for told in &self.told {
            let kept = match told {
                Told::UpTo(version) | Told::Initial(version) => {
                    let kept = *version >= promised;
                    promised = *version;
                    is_initial = false;
                    kept
                }
                Told::Added(_, thing) if is_initial => {
                    promised = promised.max(thing.version);
                    true
                }
                Told::Added(_, thing) | Told::Modified(_, thing) | Told::Deleted(_, thing) => {
                    let kept = thing.version > promised;
                    is_initial = false;
                    promised = thing.version;
                    kept
                }
            };
            if !kept {
                return Err(format!("told too late: {told:?} of {self:#?}"));
            }
        }
        if self.end.is_some() || self.told.last() == Some(&Told::UpTo(end)) {
            Ok(())
        } else {
            Err(format!("not all is told: {self:#?}"))
        }
    }
}
