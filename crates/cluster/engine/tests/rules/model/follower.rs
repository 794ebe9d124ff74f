//! Followers maintain a copy of a kind like real clients: they list, watch from the list's version,
//! and list again when the history has expired.

use std::collections::BTreeMap;

use longshore_engine::{Engine, Error, ListRequest};
use tokio::{sync::watch, task::JoinHandle};

use super::{
    body::request,
    history::History,
    kind::{ApiVersion, Key, known},
    model_object::ModelObject,
    operation::{Call, Operation, Scope},
    plain::list,
    watcher::{Notification, watch_request},
};

/// An observation of a follower.
#[derive(Debug)]
enum Observation {
    /// A list at a version.
    List(u64, Vec<(Key, ModelObject)>),
    Event(Box<Notification>),
    /// The kind is not served.
    Nothing,
}

/// A follower and all its observations.
#[derive(Debug)]
pub struct FollowerRecord {
    scope: Scope,
    api_version: ApiVersion,
    limit: Option<usize>,
    saw: Vec<Observation>,
}

/// Starts to follow until `over` is set, and then until the last event.
pub fn start(
    engine: &Engine,
    call: &Call,
    over: watch::Receiver<bool>,
) -> Option<JoinHandle<FollowerRecord>> {
    let Operation::Follow { scope, limit } = &call.operation else {
        return None;
    };
    let followed = FollowerRecord {
        scope: scope.clone(),
        api_version: call.api_version,
        limit: *limit,
        saw: Vec::new(),
    };
    Some(tokio::spawn(followed.follow(engine.clone(), over)))
}

impl FollowerRecord {
    async fn follow(mut self, engine: Engine, mut over: watch::Receiver<bool>) -> Self {
        loop {
            let is_last = *over.borrow();
            let Some(revision) = self.list(&engine).await else {
                self.saw.push(Observation::Nothing);
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

    /// Lists all objects page by page, or in one request if the continue token has expired. `None`
    /// if the kind is not served.
    async fn list(&mut self, engine: &Engine) -> Option<u64> {
        let mut list = ListRequest {
            limit: self.limit,
            ..request(&self.scope, self.api_version)
        };
        let mut found = Vec::new();
        loop {
            match engine.list(&list) {
                Ok(page) => {
                    let model_objects = page.items.iter();
                    found
                        .extend(model_objects.map(|o| known(self.scope.kind, self.api_version, o)));
                    list.cursor = page.cursor;
                    if list.cursor.is_none() {
                        self.saw.push(Observation::List(page.revision, found));
                        return Some(page.revision);
                    }
                }
                Err(Error::Expired { .. }) => {
                    found.clear();
                    list = request(&self.scope, self.api_version);
                }
                Err(Error::NotFound(_)) => return None,
                Err(error) => panic!("{error}: {self:#?}"),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Watches from a version. Returns true after the last event, false if the watch ended
    /// earlier.
    async fn watch(
        &mut self,
        engine: &Engine,
        revision: u64,
        over: &mut watch::Receiver<bool>,
    ) -> bool {
        let started = engine.watch(&watch_request(
            &self.scope,
            self.api_version,
            Some(revision),
        ));
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
                Ok(event) => {
                    self.record(Notification::of(&event, self.scope.kind, self.api_version))
                }
                Err(error) => return self.stopped(&error),
            }
        }
        loop {
            match watch.try_next() {
                Ok(Some(event)) => {
                    self.record(Notification::of(&event, self.scope.kind, self.api_version))
                }
                Ok(None) => return true,
                Err(error) => return self.stopped(&error),
            }
        }
    }

    fn record(&mut self, notification: Notification) {
        self.saw.push(Observation::Event(Box::new(notification)));
    }

    /// Returns false if the follower has to list again. Panics on unexpected errors.
    fn stopped(&self, error: &Error) -> bool {
        match error {
            Error::Expired { .. } | Error::KindGone(_) | Error::NotFound(_) => false,
            error => panic!("{error}: {self:#?}"),
        }
    }

    /// Checks that the copy was correct at each version of an event or list, and is correct at the
    /// end.
    pub fn check(&self, history: &History) -> Result<(), String> {
        let mut copy = BTreeMap::new();
        let mut at = history.start;
        for saw in &self.saw {
            let was = at;
            match saw {
                Observation::Nothing => {
                    copy.clear();
                    continue;
                }
                Observation::List(revision, found) => {
                    copy = found.iter().cloned().collect();
                    at = *revision;
                }
                Observation::Event(notification) => at = self.take(&mut copy, notification)?,
            }
            if at < was || (matches!(saw, Observation::Event(_)) && at == was) {
                return Err(format!("{at} came after {was}: {self:#?}"));
            }
            self.is_right(history, &copy, at)?;
        }
        self.is_right(history, &copy, history.end())
    }

    /// Applies an event to the copy; returns its version.
    fn take(
        &self,
        copy: &mut BTreeMap<Key, ModelObject>,
        notification: &Notification,
    ) -> Result<u64, String> {
        let (key, model_object, fits) = match notification {
            Notification::Added(key, model_object) => {
                let before = copy.insert(key.clone(), model_object.clone());
                (key, model_object, before.is_none())
            }
            Notification::Modified(key, model_object) => {
                let before = copy.insert(key.clone(), model_object.clone());
                (key, model_object, before.is_some())
            }
            Notification::Deleted(key, model_object) => {
                (key, model_object, copy.remove(key).is_some())
            }
            Notification::UpTo(_) | Notification::Initial(_) => {
                return Err(format!("not asked for: {self:#?}"));
            }
        };
        if fits {
            Ok(model_object.version)
        } else {
            Err(format!(
                "{key:?} does not match the copy: {notification:?} of {self:#?}"
            ))
        }
    }

    fn is_right(
        &self,
        history: &History,
        copy: &BTreeMap<Key, ModelObject>,
        at: u64,
    ) -> Result<(), String> {
        let state = list(&history.visible_state(at), &self.scope);
        if state
            .iter()
            .map(|(key, model_object)| (key, model_object))
            .eq(copy)
        {
            return Ok(());
        }
        // A version that is not served shows no objects.
        if copy.is_empty() && !history.is_served(self.scope.kind, self.api_version, at) {
            return Ok(());
        }
        Err(format!("{copy:#?}\nis not {at}: {state:#?}\n{self:#?}"))
    }
}
