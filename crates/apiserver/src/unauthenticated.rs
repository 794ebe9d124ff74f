//! Connections whose client has not authenticated yet: any local user can open
//! them, so there are few at a time, each for a short time and with few
//! requests. When there are too many, the oldest is closed to make room for
//! the newest: who only holds connections keeps no one else out.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::limits;

/// The connections of a listener that have not authenticated.
#[derive(Debug)]
pub(crate) struct Unauthenticated {
    most: usize,
    /// How long a client may take to authenticate.
    time: Duration,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// By age, the oldest first.
    connections: BTreeMap<u64, Arc<Notify>>,
}

/// One connection; no longer unauthenticated when it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    set: Arc<Unauthenticated>,
    number: u64,
    closed: Arc<Notify>,
    deadline: Instant,
    authenticated: AtomicBool,
    /// Requests without valid credentials.
    requests: AtomicU32,
}

impl Unauthenticated {
    pub(crate) fn new(most: usize, time: Duration) -> Arc<Self> {
        Arc::new(Self {
            most,
            time,
            open: Mutex::default(),
        })
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a new connection.
    pub(crate) fn enter(self: &Arc<Self>) -> Entry {
        let closed = Arc::new(Notify::new());
        let mut open = self.open();
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, closed.clone());
        while open.connections.len() > self.most {
            close_oldest(&mut open);
        }
        Entry {
            set: self.clone(),
            number,
            closed,
            deadline: Instant::now() + self.time,
            authenticated: AtomicBool::new(false),
            requests: AtomicU32::new(0),
        }
    }

    /// Closes the oldest connection, where descriptors have run out.
    pub(crate) fn make_room(&self) {
        close_oldest(&mut self.open());
    }
}

fn close_oldest(open: &mut Open) {
    if let Some((_, closed)) = open.connections.pop_first() {
        closed.notify_one();
    }
}

impl Entry {
    /// Whether the client has authenticated.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Acquire)
    }

    /// The client has authenticated: the connection stays.
    pub(crate) fn authenticated(&self) {
        if !self.authenticated.swap(true, Ordering::AcqRel) {
            self.leave();
        }
    }

    /// A request came without valid credentials. After too many of them the
    /// connection is closed.
    pub(crate) fn count(&self) {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        if before >= limits::UNAUTHENTICATED_REQUESTS {
            self.closed.notify_one();
        }
    }

    /// Done when the connection is to be closed at once: it had to make room,
    /// or sent too many requests.
    pub(crate) async fn closed(&self) {
        loop {
            self.closed.notified().await;
            if !self.is_authenticated() {
                return;
            }
        }
    }

    /// Done when the time to authenticate is over.
    pub(crate) async fn expired(&self) {
        sleep_until(self.deadline).await;
        if self.is_authenticated() {
            std::future::pending::<()>().await;
        }
    }

    fn leave(&self) {
        self.set.open().connections.remove(&self.number);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn is_closed(entry: &Entry) -> bool {
        entry.closed().now_or_never().is_some()
    }

    #[tokio::test]
    async fn the_oldest_makes_room() {
        let set = Unauthenticated::new(2, limits::UNAUTHENTICATED_TIME);
        let first = set.enter();
        let second = set.enter();
        assert!(!is_closed(&first));
        let third = set.enter();
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
        // One that has authenticated takes no place, nor does one that left.
        second.authenticated();
        drop(third);
        let fourth = set.enter();
        let fifth = set.enter();
        assert!(!is_closed(&second) && !is_closed(&fourth) && !is_closed(&fifth));
        set.make_room();
        assert!(is_closed(&fourth) && !is_closed(&fifth));
    }

    #[tokio::test]
    async fn the_time_to_authenticate_is_bounded() {
        let set = Unauthenticated::new(2, Duration::from_millis(20));
        let (slow, client) = (set.enter(), set.enter());
        client.authenticated();
        slow.expired().await;
        tokio::time::sleep_until(client.deadline).await;
        assert!(client.expired().now_or_never().is_none());
    }

    #[tokio::test]
    async fn requests_without_credentials_are_counted() {
        let set = Unauthenticated::new(2, limits::UNAUTHENTICATED_TIME);
        let entry = set.enter();
        for _ in 0..limits::UNAUTHENTICATED_REQUESTS {
            entry.count();
        }
        assert!(!is_closed(&entry));
        entry.count();
        assert!(is_closed(&entry));
    }
}
