//! A copy of a view's objects, kept fresh by a watch in the background, and
//! the changes to it.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    cluster::Cluster,
    error::{Error, Result},
    item::{self, Item, List},
    kinds::Kind,
    view::View,
    watch::{Watch, WatchEvent},
};

/// A copy of a view's objects, kept fresh. Clones share it; the watch behind
/// it ends when the last clone and the last [`Changes`] are gone.
#[derive(Clone)]
pub struct Cache<K: Kind> {
    store: Arc<Store<K>>,
    guard: Arc<DropGuard>,
}

/// A change of a [`Cache`].
#[derive(Debug, Clone)]
pub enum Change<K: Kind> {
    /// The object is there, as here.
    Upsert(Item<K>),
    /// The object is gone; the last state known.
    Gone(Item<K>),
}

impl<K: Kind> Change<K> {
    /// The object.
    #[must_use]
    pub fn item(&self) -> &Item<K> {
        match self {
            Self::Upsert(item) | Self::Gone(item) => item,
        }
    }
}

struct Store<K: Kind> {
    state: Mutex<State<K>>,
}

struct State<K: Kind> {
    items: BTreeMap<String, Item<K>>,
    subscribers: Vec<Weak<Subscriber<K>>>,
    ended: bool,
}

/// What a subscriber has not taken yet. Per object only the latest state is
/// kept, so a slow one costs no more than the objects there are; but each
/// object that went is told, also when its name is used again.
struct Subscriber<K: Kind> {
    waiting: Mutex<Waiting<K>>,
    news: Notify,
}

struct Waiting<K: Kind> {
    order: VecDeque<String>,
    changes: HashMap<String, VecDeque<Change<K>>>,
    ended: bool,
}

impl<K: Kind> Subscriber<K> {
    fn push(&self, change: Change<K>) {
        let mut waiting = self.waiting.lock();
        let key = change.item().key();
        let changes = waiting.changes.entry(key.clone()).or_default();
        let first = changes.is_empty();
        if matches!(changes.back(), Some(Change::Upsert(old)) if old.uid() == change.item().uid()) {
            changes.pop_back();
        }
        changes.push_back(change);
        if first {
            waiting.order.push_back(key);
        }
        drop(waiting);
        self.news.notify_one();
    }
}

impl<K: Kind> Store<K> {
    fn upsert(&self, item: &Item<K>) {
        self.state.lock().upsert(item.compact());
    }

    fn remove(&self, item: &Item<K>) {
        let mut state = self.state.lock();
        let known = state.items.get(&item.key());
        if known.is_some_and(|known| known.uid() == item.uid()) {
            state.items.remove(&item.key());
            state.tell(&Change::Gone(item.compact()));
        }
    }

    /// Makes the cache equal to a list; only differences are told.
    fn replace(&self, list: List<K>) {
        let mut state = self.state.lock();
        let present: std::collections::HashSet<String> = list.items.iter().map(Item::key).collect();
        let gone: Vec<String> = state
            .items
            .keys()
            .filter(|key| !present.contains(*key))
            .cloned()
            .collect();
        for key in gone {
            if let Some(item) = state.items.remove(&key) {
                state.tell(&Change::Gone(item));
            }
        }
        for item in list.items {
            if state.items.get(&item.key()) != Some(&item) {
                state.upsert(item.compact());
            }
        }
    }

    fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        for subscriber in state
            .subscribers
            .drain(..)
            .filter_map(|weak| weak.upgrade())
        {
            subscriber.waiting.lock().ended = true;
            subscriber.news.notify_one();
        }
    }
}

impl<K: Kind> State<K> {
    fn upsert(&mut self, item: Item<K>) {
        let before = self.items.insert(item.key(), item.clone());
        if let Some(before) = before
            && before.uid() != item.uid()
        {
            // Its deletion was missed while the watch was away.
            self.tell(&Change::Gone(before));
        }
        self.tell(&Change::Upsert(item));
    }

    fn tell(&mut self, change: &Change<K>) {
        self.subscribers.retain(|weak| {
            weak.upgrade()
                .map(|subscriber| subscriber.push(change.clone()))
                .is_some()
        });
    }
}

impl<K: Kind> Cache<K> {
    pub(crate) async fn open(view: View<K>) -> Result<Self> {
        let list = view.list().await?;
        let version = list.version.clone();
        let items = list
            .items
            .iter()
            .map(|item| (item.key(), item.compact()))
            .collect();
        let state = State {
            items,
            subscribers: Vec::new(),
            ended: false,
        };
        let store = Arc::new(Store {
            state: Mutex::new(state),
        });
        let token = CancellationToken::new();
        tokio::spawn(run(view, version, store.clone(), token.clone()));
        Ok(Self {
            store,
            guard: Arc::new(token.drop_guard()),
        })
    }

    /// All objects, by namespace and name.
    #[must_use]
    pub fn items(&self) -> Vec<Item<K>> {
        self.store.state.lock().items.values().cloned().collect()
    }

    /// One object.
    #[must_use]
    pub fn get(&self, namespace: Option<&str>, name: &str) -> Option<Item<K>> {
        self.store
            .state
            .lock()
            .items
            .get(&item::key(namespace, name))
            .cloned()
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.state.lock().items.len()
    }

    /// Whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The changes from here on, beginning with an [`Change::Upsert`] for
    /// each object that is there.
    #[must_use]
    pub fn subscribe(&self) -> Changes<K> {
        let mut state = self.store.state.lock();
        let subscriber = Arc::new(Subscriber {
            waiting: Mutex::new(Waiting {
                order: VecDeque::new(),
                changes: HashMap::new(),
                ended: state.ended,
            }),
            news: Notify::new(),
        });
        for item in state.items.values() {
            subscriber.push(Change::Upsert(item.clone()));
        }
        state.subscribers.push(Arc::downgrade(&subscriber));
        Changes {
            subscriber,
            _guard: self.guard.clone(),
        }
    }
}

impl<K: Kind> std::fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("items", &self.len())
            .finish_non_exhaustive()
    }
}

/// The changes of a [`Cache`], from [`Cache::subscribe`]. Several changes of
/// one object, not yet taken, become one: the latest. Keeps the cache alive.
pub struct Changes<K: Kind> {
    subscriber: Arc<Subscriber<K>>,
    _guard: Arc<DropGuard>,
}

impl<K: Kind> Changes<K> {
    /// The next change; `None` once the [`Cluster`] is closed. May be given
    /// up and called again; no change is lost.
    pub async fn next(&mut self) -> Option<Change<K>> {
        loop {
            match self.take() {
                Taken::Change(change) => return Some(change),
                Taken::End => return None,
                Taken::Nothing => self.subscriber.news.notified().await,
            }
        }
    }

    /// The next change if there is one now.
    pub fn try_next(&mut self) -> Option<Change<K>> {
        match self.take() {
            Taken::Change(change) => Some(change),
            Taken::End | Taken::Nothing => None,
        }
    }

    fn take(&self) -> Taken<K> {
        let mut waiting = self.subscriber.waiting.lock();
        let Some(key) = waiting.order.pop_front() else {
            return if waiting.ended {
                Taken::End
            } else {
                Taken::Nothing
            };
        };
        let Some(changes) = waiting.changes.get_mut(&key) else {
            return Taken::Nothing;
        };
        let change = changes.pop_front();
        if changes.is_empty() {
            waiting.changes.remove(&key);
        } else {
            waiting.order.push_front(key);
        }
        change.map_or(Taken::Nothing, Taken::Change)
    }
}

enum Taken<K: Kind> {
    Change(Change<K>),
    Nothing,
    End,
}

impl<K: Kind> std::fmt::Debug for Changes<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

async fn run<K: Kind>(
    view: View<K>,
    version: String,
    store: Arc<Store<K>>,
    dropped: CancellationToken,
) {
    tokio::select! {
        () = dropped.cancelled() => {}
        () = keep_fresh(&view, version, &store) => {}
    }
    store.end();
}

/// Follows the watch until the cluster is closed. What ends a watch, a lost
/// permission for instance, may come right again: then all is listed anew.
async fn keep_fresh<K: Kind>(view: &View<K>, version: String, store: &Store<K>) {
    let cluster: &Cluster = view.cluster();
    let mut failures = 0;
    let mut since = Some(version);
    loop {
        let outcome = async {
            let version = match since.take() {
                Some(version) => version,
                None => {
                    let list = view.list().await?;
                    let version = list.version.clone();
                    store.replace(list);
                    version
                }
            };
            follow(view.watch_since(&version).await?, store, &mut failures).await
        };
        match outcome.await {
            Err(Error::Closed) => return,
            Err(error) => {
                let wait = cluster.timing.backoff().wait(failures);
                tracing::warn!(%error, ?wait, kind = %view.kind().gvk, "a cache is stale");
                failures = failures.saturating_add(1);
                tokio::select! {
                    () = cluster.shared.closed.cancelled() => return,
                    () = tokio::time::sleep(wait) => {}
                }
            }
            Ok(()) => {}
        }
    }
}

async fn follow<K: Kind>(mut watch: Watch<K>, store: &Store<K>, failures: &mut u32) -> Result<()> {
    loop {
        match watch.next(None).await? {
            WatchEvent::Added(item) | WatchEvent::Modified(item) => store.upsert(&item),
            WatchEvent::Deleted(item) => store.remove(&item),
            WatchEvent::Resync(list) => store.replace(list),
        }
        *failures = 0;
    }
}
