//! Watchers: read at their own pace, and must have been told exactly what the
//! history says.

use longshore_engine::{Engine, Error, Watch, WatchEvent, WatchRequest, WatchStart};
use tokio::sync::watch;

use super::{
    client::{fields, labels},
    history::History,
    operation::{Operation, Pace, Scope, Start},
    plain::{list, selects},
    thing::{Key, Thing},
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

/// A watcher, and all it was told.
#[derive(Debug)]
pub struct Watched {
    scope: Scope,
    /// After this version; `None` with the state first.
    since: Option<u64>,
    /// The newest revision before and after it was started.
    before: u64,
    after: u64,
    told: Vec<Told>,
    expired: bool,
}

/// Starts a watch; it is read until `over` says so, and to the end then.
pub fn start(
    engine: &Engine,
    operation: &Operation,
    over: watch::Receiver<bool>,
) -> Option<tokio::task::JoinHandle<Watched>> {
    let Operation::Watch { scope, start, pace } = operation else {
        return None;
    };
    let before = engine.revision();
    let since = match start {
        Start::Ago(ago) => Some(before.saturating_sub(u64::from(*ago)).max(1)),
        Start::Now | Start::Initial => None,
    };
    let request = WatchRequest {
        namespace: scope.namespace.map(str::to_owned),
        labels: labels(scope.selector),
        fields: fields(scope),
        initial_events: *start == Start::Initial,
        bookmarks: true,
        ..WatchRequest::of(
            scope.kind.info(),
            since.map_or(WatchStart::Latest, WatchStart::After),
        )
    };
    let watch = engine.watch(&request);
    let mut watched = Watched {
        scope: scope.clone(),
        since,
        before,
        after: engine.revision(),
        told: Vec::new(),
        expired: false,
    };
    let watch = match watch {
        Ok(watch) => watch,
        Err(Error::Expired { .. }) => {
            watched.expired = true;
            return Some(tokio::spawn(async { watched }));
        }
        Err(error) => panic!("{error}: {operation:?}"),
    };
    Some(tokio::spawn(watched.read(watch, *pace, over)))
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
        if !self.expired {
            self.bookmark(&mut watch);
        }
        self
    }

    /// Notes an event; `None` when there is none.
    fn hear(&mut self, next: Result<Option<WatchEvent>, Error>) -> Option<()> {
        let kind = self.scope.kind;
        let both =
            |object: &longshore_engine::Object| (Key::of(kind, object), Thing::of(kind, object));
        let told = match next {
            Ok(None) => return None,
            Err(Error::Expired { .. }) => {
                self.expired = true;
                return None;
            }
            Err(error) => panic!("{error}"),
            Ok(Some(WatchEvent::Added(object))) => {
                let (key, thing) = both(&object);
                Told::Added(key, thing)
            }
            Ok(Some(WatchEvent::Modified(object))) => {
                let (key, thing) = both(&object);
                Told::Modified(key, thing)
            }
            Ok(Some(WatchEvent::Deleted(object))) => {
                let (key, thing) = both(&object);
                Told::Deleted(key, thing)
            }
            Ok(Some(WatchEvent::Bookmark(version))) => Told::UpTo(version),
            Ok(Some(WatchEvent::InitialEventsEnd(version))) => Told::Initial(version),
        };
        self.told.push(told);
        Some(())
    }

    fn bookmark(&mut self, watch: &mut Watch) -> Option<()> {
        match watch.bookmark() {
            Ok(0) => {}
            Ok(version) => self.told.push(Told::UpTo(version)),
            Err(_) => {
                self.expired = true;
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
        let since = self.since.unwrap_or(self.before);
        if self.expired && since >= history.forgotten {
            return Err(format!("forgotten without reason: {self:#?}"));
        }
        let from = match self.since {
            Some(since) if since < history.start => return Ok(()),
            Some(since) => since..=since,
            None => self.before..=self.after,
        };
        let fits = |from| {
            let expected = self.expected(history, from);
            let expected = expected
                .iter()
                .take(if self.expired { told.len() } else { usize::MAX });
            expected.eq(told.iter().copied())
        };
        if !from.clone().any(fits) {
            let expected = self.expected(history, *from.start());
            return Err(format!(
                "told otherwise than it happened: {self:#?}\nexpected: {expected:#?}"
            ));
        }
        self.check_bookmarks(history.end())
    }

    fn expected(&self, history: &History, from: u64) -> Vec<Told> {
        let mut expected = Vec::new();
        if self.since.is_none() {
            let state = list(history.state(from), &self.scope);
            expected.extend(
                state
                    .into_iter()
                    .map(|(key, thing)| Told::Added(key, thing)),
            );
            if self
                .told
                .iter()
                .any(|told| matches!(told, Told::Initial(_)))
            {
                expected.push(Told::Initial(from));
            }
        }
        let from = usize::try_from(from - history.start).unwrap();
        for step in &history.steps[from..] {
            let (key, told) = (step.key.clone(), step.told.clone());
            let before = step
                .before
                .as_ref()
                .filter(|thing| selects(&self.scope, &key, thing));
            let after = !step.gone && selects(&self.scope, &key, &told);
            match (before, after) {
                (None, true) => expected.push(Told::Added(key, told)),
                (Some(_), true) => expected.push(Told::Modified(key, told)),
                (Some(_), false) if step.gone => expected.push(Told::Deleted(key, told)),
                (Some(before), false) => {
                    expected.push(Told::Deleted(
                        key,
                        Thing {
                            version: told.version,
                            ..before.clone()
                        },
                    ));
                }
                (None, false) => {}
            }
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
        if self.expired || self.told.last() == Some(&Told::UpTo(end)) {
            Ok(())
        } else {
            Err(format!("not all is told: {self:#?}"))
        }
    }
}
