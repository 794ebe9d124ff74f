//! Followers keep a copy of a kind as real clients do: they list, watch from
//! the list's version on, and list again when their history is forgotten.

use std::collections::BTreeMap;

use longshore_engine::{Engine, Error, ListRequest};
use tokio::{sync::watch, task::JoinHandle};

use super::{
    body::request,
    history::History,
    kind::{Key, Via, known},
    operation::{Call, Operation, Scope},
    plain::list,
    thing::Thing,
    watcher::{Told, watch_request},
};

/// What a follower saw.
#[derive(Debug)]
enum Saw {
    /// A list of a version.
    List(u64, Vec<(Key, Thing)>),
    Event(Box<Told>),
    /// The kind is not there.
    Nothing,
}

/// A follower, and all it saw.
#[derive(Debug)]
pub struct Followed {
    scope: Scope,
    via: Via,
    limit: Option<usize>,
    saw: Vec<Saw>,
}

/// Starts to follow, until `over` says so, and to the end then.
pub fn start(
    engine: &Engine,
    call: &Call,
    over: watch::Receiver<bool>,
) -> Option<JoinHandle<Followed>> {
    let Operation::Follow { scope, limit } = &call.operation else {
        return None;
    };
    let followed = Followed {
        scope: scope.clone(),
        via: call.via,
        limit: *limit,
        saw: Vec::new(),
    };
    Some(tokio::spawn(followed.follow(engine.clone(), over)))
}

impl Followed {
    async fn follow(mut self, engine: Engine, mut over: watch::Receiver<bool>) -> Self {
        loop {
            let is_last = *over.borrow();
            let Some(revision) = self.list(&engine).await else {
                self.saw.push(Saw::Nothing);
                if is_last {
                    return self;
                }
                tokio::task::yield_now().await;
                continue;
            };
            if self.watch(&engine, revision, &mut over).await {
                return self;
            }
        }
    }

    /// Lists all, page by page, and in one go when the pages are forgotten.
    /// `None` when the kind is not there.
    async fn list(&mut self, engine: &Engine) -> Option<u64> {
        let mut list = ListRequest {
            limit: self.limit,
            ..request(&self.scope, self.via)
        };
        let mut found = Vec::new();
        loop {
            match engine.list(&list) {
                Ok(page) => {
                    let things = page.items.iter();
                    found.extend(things.map(|o| known(self.scope.kind, self.via, o)));
                    list.cursor = page.cursor;
                    if list.cursor.is_none() {
                        self.saw.push(Saw::List(page.revision, found));
                        return Some(page.revision);
                    }
                }
                Err(Error::Expired { .. }) => {
                    found.clear();
                    list = request(&self.scope, self.via);
                }
                Err(Error::NotFound(_)) => return None,
                Err(error) => panic!("{error}: {self:#?}"),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Watches from a version on; true when all is over, false when the watch
    /// ended before.
    async fn watch(
        &mut self,
        engine: &Engine,
        revision: u64,
        over: &mut watch::Receiver<bool>,
    ) -> bool {
        let started = engine.watch(&watch_request(&self.scope, self.via, Some(revision)));
        let mut watch = match started {
            Ok(watch) => watch,
            Err(error) => return self.stopped(&error),
        };
        loop {
            let next = tokio::select! {
                biased;
                next = watch.next() => next,
                _ = over.wait_for(|over| *over) => break,
            };
            match next {
                Ok(event) => self.hear(Told::of(&event, self.scope.kind, self.via)),
                Err(error) => return self.stopped(&error),
            }
        }
        loop {
            match watch.try_next() {
                Ok(Some(event)) => self.hear(Told::of(&event, self.scope.kind, self.via)),
                Ok(None) => return true,
                Err(error) => return self.stopped(&error),
            }
        }
    }

    fn hear(&mut self, told: Told) {
        self.saw.push(Saw::Event(Box::new(told)));
    }

    /// Whether the watch ended for good: never, it is to be made anew.
    fn stopped(&self, error: &Error) -> bool {
        match error {
            Error::Expired { .. } | Error::KindGone(_) | Error::NotFound(_) => false,
            error => panic!("{error}: {self:#?}"),
        }
    }

    /// The copy must have been right at each version it was of, and is so in
    /// the end.
    pub fn check(&self, history: &History) -> Result<(), String> {
        let mut copy = BTreeMap::new();
        let mut at = history.start;
        for saw in &self.saw {
            let was = at;
            match saw {
                Saw::Nothing => {
                    copy.clear();
                    continue;
                }
                Saw::List(revision, found) => {
                    copy = found.iter().cloned().collect();
                    at = *revision;
                }
                Saw::Event(told) => at = self.take(&mut copy, told)?,
            }
            if at < was || (matches!(saw, Saw::Event(_)) && at == was) {
                return Err(format!("{at} came after {was}: {self:#?}"));
            }
            self.is_right(history, &copy, at)?;
        }
        self.is_right(history, &copy, history.end())
    }

    /// Brings the copy up to an event; answers its version.
    fn take(&self, copy: &mut BTreeMap<Key, Thing>, told: &Told) -> Result<u64, String> {
        let (key, thing, fits) = match told {
            Told::Added(key, thing) => {
                let before = copy.insert(key.clone(), thing.clone());
                (key, thing, before.is_none())
            }
            Told::Modified(key, thing) => {
                let before = copy.insert(key.clone(), thing.clone());
                (key, thing, before.is_some())
            }
            Told::Deleted(key, thing) => (key, thing, copy.remove(key).is_some()),
            Told::UpTo(_) | Told::Initial(_) => return Err(format!("not asked for: {self:#?}")),
        };
        if fits {
            Ok(thing.version)
        } else {
            Err(format!("{key:?} was not so before: {told:?} of {self:#?}"))
        }
    }

    fn is_right(
        &self,
        history: &History,
        copy: &BTreeMap<Key, Thing>,
        at: u64,
    ) -> Result<(), String> {
        let state = list(&history.seen(at), &self.scope);
        if state.iter().map(|(key, thing)| (key, thing)).eq(copy) {
            return Ok(());
        }
        // In a version that is not served there is nothing to see.
        if copy.is_empty() && !history.is_served(self.scope.kind, self.via, at) {
            return Ok(());
        }
        Err(format!("{copy:#?}\nis not {at}: {state:#?}\n{self:#?}"))
    }
}
