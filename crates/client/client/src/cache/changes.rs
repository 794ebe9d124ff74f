//! Changes that the subscribers of a cache have not received yet.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
};

use tokio::sync::Notify;
use tokio_util::sync::DropGuard;

use super::table::{self, Table};
use crate::{
    cluster::{Cluster, Connection},
    item::Item,
    kind::{KindOf, Object},
    locks::Mutex,
};
use longshore_snapshots::Snapshot;

/// A change of a [`Cache`](crate::Cache).
#[derive(Debug, Clone)]
pub enum Change<K: Object, C: Connection = Cluster> {
    /// The object exists, with this state.
    Upsert(Item<K, C>),
    /// The object was deleted; its last known state.
    Gone(Item<K, C>),
}

impl<K: Object, C: Connection> Change<K, C> {
    /// The object.
    #[must_use]
    pub fn item(&self) -> &Item<K, C> {
        match self {
            Self::Upsert(item) | Self::Gone(item) => item,
        }
    }
}

/// A change of a stored object.
#[derive(Clone)]
pub(super) enum SnapshotChange {
    Upsert(Arc<Snapshot>),
    Gone(Arc<Snapshot>),
}

impl SnapshotChange {
    fn snapshot(&self) -> &Arc<Snapshot> {
        match self {
            Self::Upsert(snapshot) | Self::Gone(snapshot) => snapshot,
        }
    }
}

/// Only the latest state of each object is kept, so a slow subscriber needs no more memory
/// than the objects. Each deletion is reported, even if an object of the same name was
/// created again.
#[derive(Default)]
pub(super) struct Subscriber {
    waiting: Mutex<Waiting>,
    news: Notify,
}

#[derive(Default)]
struct Waiting {
    order: VecDeque<String>,
    changes: HashMap<String, VecDeque<SnapshotChange>>,
    /// True if the subscriber found no more changes when it last asked.
    is_idle: bool,
    ended: bool,
}

impl Subscriber {
    fn push(&self, change: &SnapshotChange) {
        let mut waiting = self.waiting.lock();
        let key = table::key_of(change.snapshot());
        let changes = waiting.changes.entry(key.clone()).or_default();
        let first = changes.is_empty();
        let uid = change.snapshot().uid();
        if matches!(changes.back(), Some(SnapshotChange::Upsert(old)) if old.uid() == uid) {
            changes.pop_back();
        }
        changes.push_back(change.clone());
        if first {
            waiting.order.push_back(key);
        }
        drop(waiting);
        self.news.notify_one();
    }

    fn end(&self) {
        self.waiting.lock().ended = true;
        self.news.notify_one();
    }

    fn take(&self) -> Taken {
        let mut waiting = self.waiting.lock();
        waiting.is_idle = waiting.order.is_empty();
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

    /// Returns true if the subscriber has processed all changes and has requested more.
    fn is_waiting(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.is_idle && waiting.order.is_empty()
    }

    /// Returns the next change if it has already arrived.
    pub(super) fn try_next(&self) -> Option<SnapshotChange> {
        match self.take() {
            Taken::Change(change) => Some(change),
            Taken::End | Taken::Nothing => None,
        }
    }

    /// Returns the next change, or `None` at the end. Cancel safe.
    pub(super) async fn next(&self) -> Option<SnapshotChange> {
        loop {
            match self.take() {
                Taken::Change(change) => return Some(change),
                Taken::End => return None,
                Taken::Nothing => self.news.notified().await,
            }
        }
    }
}

/// The queues of the subscribers.
#[derive(Default)]
pub(super) struct Subscribers {
    all: Vec<Weak<Subscriber>>,
    ended: bool,
}

impl Subscribers {
    pub(super) fn add(&mut self) -> Arc<Subscriber> {
        let subscriber = Arc::new(Subscriber::default());
        if self.ended {
            subscriber.end();
        }
        self.all.push(Arc::downgrade(&subscriber));
        subscriber
    }

    pub(super) fn notify(&mut self, change: &SnapshotChange) {
        let push = |weak: &Weak<Subscriber>| weak.upgrade().map(|one| one.push(change)).is_some();
        self.all.retain(push);
    }

    /// Returns true if all subscribers have processed all changes.
    pub(super) fn are_waiting(&self) -> bool {
        let mut subscribers = self.all.iter().filter_map(Weak::upgrade);
        subscribers.all(|subscriber| subscriber.is_waiting())
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
        for subscriber in self.all.drain(..).filter_map(|weak| weak.upgrade()) {
            subscriber.end();
        }
    }
}

/// The changes of a [`Cache`](crate::Cache), from
/// [`Cache::subscribe`](crate::Cache::subscribe). Several changes of one object that were
/// not received yet become one: the latest. Keeps the cache alive.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::{Change, DeleteOptions};
/// # let map = |name: &str| serde_json::json!({"metadata": {"name": name}});
/// let maps = cluster.configmaps().in_namespace("default")?;
/// maps.create(&map("a")).await?;
/// let cache = maps.cache().await?;
///
/// let mut changes = cache.subscribe();
/// let first = changes.next().await.expect("what is there comes first");
/// assert_eq!(first.item().name(), "a");
/// assert!(changes.try_next().is_none());
///
/// maps.delete("a", &DeleteOptions::default()).await?;
/// match changes.next().await {
///     Some(Change::Upsert(map)) => println!("{} is there", map.name()),
///     Some(Change::Gone(map)) => assert_eq!(map.name(), "a"),
///     None => println!("the cluster is closed"),
/// }
/// cluster.close();
/// assert!(changes.next().await.is_none());
/// # Ok(()) });
/// ```
pub struct Changes<K: Object> {
    pub(super) cluster: Cluster,
    pub(super) kind: KindOf<K>,
    /// The objects at the time of the subscription, and the last key that was returned.
    pub(super) initial: Option<(Table, String)>,
    pub(super) subscriber: Arc<Subscriber>,
    pub(super) _guard: Arc<DropGuard>,
}

enum Taken {
    Change(SnapshotChange),
    Nothing,
    End,
}

impl<K: Object> Changes<K> {
    /// Returns the next change, or `None` after the [`Cluster`] was closed. Cancel safe: no
    /// change is lost.
    pub async fn next(&mut self) -> Option<Change<K>> {
        let change = match self.initial() {
            Some(change) => Some(change),
            None => self.subscriber.next().await,
        };
        change.map(|change| self.wrap(change))
    }

    /// Returns the next change if it has already arrived.
    pub fn try_next(&mut self) -> Option<Change<K>> {
        let change = self.initial().or_else(|| self.subscriber.try_next());
        change.map(|change| self.wrap(change))
    }

    /// Returns the next of the objects at the time of the subscription.
    fn initial(&mut self) -> Option<SnapshotChange> {
        let (table, last) = self.initial.as_mut()?;
        let Some((key, snapshot)) = table.after(last) else {
            self.initial = None;
            return None;
        };
        let change = SnapshotChange::Upsert(snapshot.clone());
        *last = key.to_string();
        Some(change)
    }

    fn wrap(&self, change: SnapshotChange) -> Change<K> {
        let item = |snapshot| Item::new(self.cluster.clone(), self.kind.clone(), snapshot);
        match change {
            SnapshotChange::Upsert(snapshot) => Change::Upsert(item(snapshot)),
            SnapshotChange::Gone(snapshot) => Change::Gone(item(snapshot)),
        }
    }
}

impl<K: Object> std::fmt::Debug for Changes<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}
