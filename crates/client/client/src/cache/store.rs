//! The contents of a cache: one writer, the watch, and any number of readers. Neither waits
//! for the other.

use std::{collections::HashSet, sync::Arc};

use arc_swap::ArcSwap;

use super::{
    changes::{SnapshotChange, Subscriber, Subscribers},
    table::{self, Table},
};
use crate::locks::Mutex;
use longshore_snapshots::Snapshot;

pub(super) struct Store {
    /// The contents that readers see.
    current: ArcSwap<Table>,
    /// Locked by the watch, and briefly by new subscribers.
    writer: Mutex<Writer>,
}

struct Writer {
    table: Table,
    /// The resource version of the newest change.
    version: String,
    subscribers: Subscribers,
    /// Changes to report after readers see them, so that a subscriber finds each change in
    /// the cache.
    news: Vec<SnapshotChange>,
}

impl Store {
    pub(super) fn new(snapshots: Vec<Arc<Snapshot>>, version: String) -> Self {
        let mut table = Table::default();
        for snapshot in snapshots {
            table.insert(snapshot);
        }
        Self {
            current: ArcSwap::from_pointee(table.clone()),
            writer: Mutex::new(Writer {
                table,
                version,
                subscribers: Subscribers::default(),
                news: Vec::new(),
            }),
        }
    }

    pub(super) fn current(&self) -> Arc<Table> {
        self.current.load_full()
    }

    pub(super) fn version(&self) -> String {
        self.writer.lock().version.clone()
    }

    /// Returns true if all subscribers have received all changes and wait for the next.
    pub(super) fn is_delivered(&self) -> bool {
        self.writer.lock().subscribers.are_waiting()
    }

    /// The subscriber receives every change after the returned table.
    pub(super) fn subscribe(&self) -> (Table, Arc<Subscriber>) {
        let mut writer = self.writer.lock();
        (writer.table.clone(), writer.subscribers.add())
    }

    fn change(&self, work: impl FnOnce(&mut Writer)) {
        let mut writer = self.writer.lock();
        work(&mut writer);
        self.current.store(Arc::new(writer.table.clone()));
        let Writer {
            subscribers, news, ..
        } = &mut *writer;
        news.drain(..)
            .for_each(|change| subscribers.notify(&change));
    }

    pub(super) fn upsert(&self, snapshot: Arc<Snapshot>) {
        self.change(|writer| {
            snapshot.version().clone_into(&mut writer.version);
            writer.upsert(snapshot);
        });
    }

    /// Removes an object. `last` is its last state. Does nothing if the name belongs to
    /// another object.
    pub(super) fn remove(&self, last: Arc<Snapshot>) {
        self.change(|writer| {
            last.version().clone_into(&mut writer.version);
            let key = table::key_of(&last);
            let known = writer.table.at(&key);
            if known.is_some_and(|known| known.uid() == last.uid()) {
                writer.table.remove(&key);
                writer.news.push(SnapshotChange::Gone(last));
            }
        });
    }

    /// Replaces the contents with a list and reports the differences. Readers see all
    /// changes at once.
    pub(super) fn replace(&self, snapshots: Vec<Arc<Snapshot>>, version: String) {
        self.change(|writer| {
            writer.version = version;
            let present: HashSet<String> = snapshots.iter().map(|s| table::key_of(s)).collect();
            let known = writer.table.iter().map(|(key, _)| key);
            let gone: Vec<_> = known.filter(|key| !present.contains(&***key)).collect();
            let gone: Vec<_> = gone.into_iter().cloned().collect();
            for key in gone {
                if let Some(last) = writer.table.remove(&key) {
                    writer.news.push(SnapshotChange::Gone(last));
                }
            }
            for snapshot in snapshots {
                let known = writer.table.at(&table::key_of(&snapshot));
                let same = known.is_some_and(|known| {
                    known.uid() == snapshot.uid() && known.version() == snapshot.version()
                });
                if !same {
                    writer.upsert(snapshot);
                }
            }
        });
    }

    pub(super) fn end(&self) {
        self.writer.lock().subscribers.end();
    }
}

impl Writer {
    fn upsert(&mut self, snapshot: Arc<Snapshot>) {
        let before = self.table.insert(snapshot.clone());
        if let Some(before) = before
            && before.uid() != snapshot.uid()
        {
            // The object was deleted while the watch was interrupted.
            self.news.push(SnapshotChange::Gone(before));
        }
        self.news.push(SnapshotChange::Upsert(snapshot));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        future::Future as _,
        pin::pin,
        task::{Context, Poll, Wake},
    };

    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn pod(version: u64) -> Arc<Snapshot> {
        let version = version.to_string();
        let metadata =
            json!({"namespace": "n", "name": "a", "uid": "u", "resourceVersion": version});
        let text = json!({ "metadata": metadata }).to_string();
        Arc::new(Snapshot::parse(&Bytes::from(text), "a pod").unwrap())
    }

    /// Records what readers see when a subscriber is notified.
    struct Looks {
        store: Store,
        seen: Mutex<Vec<Option<String>>>,
    }

    impl Looks {
        fn version(&self) -> Option<String> {
            let current = self.store.current();
            let known = current.at(&table::key_of(&pod(0)));
            known.map(|known| known.version().to_owned())
        }
    }

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            self.seen.lock().push(self.version());
        }
    }

    /// A controller reads the cache as soon as a change is reported, and must find the
    /// change.
    #[test]
    fn readers_see_a_change_before_it_is_reported() {
        let looks = Arc::new(Looks {
            store: Store::new(Vec::new(), String::new()),
            seen: Mutex::default(),
        });
        let (_, subscriber) = looks.store.subscribe();
        let waker = looks.clone().into();
        let mut context = Context::from_waker(&waker);
        let mut reported = |work: &dyn Fn(&Store)| {
            let mut next = pin!(subscriber.next());
            assert!(next.as_mut().poll(&mut context).is_pending());
            work(&looks.store);
            assert!(matches!(next.poll(&mut context), Poll::Ready(Some(_))));
            looks.seen.lock().pop().unwrap()
        };
        assert_eq!(reported(&|store| store.upsert(pod(1))).unwrap(), "1");
        assert_eq!(reported(&|store| store.upsert(pod(2))).unwrap(), "2");
        assert_eq!(
            reported(&|store| store.replace(vec![pod(3)], "3".into())).unwrap(),
            "3"
        );
        assert_eq!(reported(&|store| store.remove(pod(4))), None);
    }
    /// A subscriber works on a change until it asks for the next.
    #[test]
    fn changes_are_delivered_when_subscribers_ask_for_more() {
        let store = Store::new(vec![pod(1)], "1".into());
        assert!(store.is_delivered());
        let (_, subscriber) = store.subscribe();
        assert!(!store.is_delivered(), "it has not read the first objects");
        assert!(subscriber.try_next().is_none() && store.is_delivered());
        store.upsert(pod(2));
        assert!(!store.is_delivered());
        assert!(subscriber.try_next().is_some() && !store.is_delivered());
        assert!(subscriber.try_next().is_none() && store.is_delivered());
        store.remove(pod(3));
        assert_eq!(store.version(), "3");
        drop(subscriber);
        assert!(store.is_delivered());
    }
}
