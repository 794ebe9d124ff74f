//! Connections whose client has not authenticated yet. Any local user can open
//! them, so their number, time and requests are limited. If there are too many,
//! the oldest is closed to make room for the newest, so that a client that only
//! holds connections cannot lock out others.

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

/// The unauthenticated connections of a listener.
#[derive(Debug)]
pub(crate) struct Unauthenticated {
    most: usize,
    /// Maximum time for a client to authenticate.
    time: Duration,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// By age, the oldest first.
    connections: BTreeMap<u64, Arc<Notify>>,
}

/// A connection. It is removed from the set when dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    set: Arc<Unauthenticated>,
    number: u64,
    closed: Arc<Notify>,
    deadline: Instant,
    authenticated: AtomicBool,
    /// Number of requests without valid credentials.
    requests: AtomicU32,
    /// Notified when there were too many of these requests.
    too_many_requests: Notify,
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

    /// Adds a new connection.
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
            too_many_requests: Notify::new(),
        }
    }

    /// Closes the oldest connection if file descriptors have run out.
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
    /// Returns true if the client has authenticated.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Acquire)
    }

    /// Records that the client has authenticated; the connection stays open.
    pub(crate) fn authenticated(&self) {
        if !self.authenticated.swap(true, Ordering::AcqRel) {
            self.leave();
        }
    }

    /// Counts a request without valid credentials. Too many such requests end the connection.
    pub(crate) fn count(&self) {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        if before >= limits::UNAUTHENTICATED_REQUESTS {
            self.too_many_requests.notify_one();
        }
    }

    /// Resolves when the connection must be closed at once to make room.
    pub(crate) async fn closed(&self) {
        loop {
            self.closed.notified().await;
            if !self.is_authenticated() {
                return;
            }
        }
    }

    /// Resolves when the connection must end after the requests that it has already received: the
    /// time to authenticate is over, or too many requests had no valid credentials. A client whose
    /// token has expired may have many concurrent requests. Each of them must be answered with 401
    /// so that the client renews the token.
    pub(crate) async fn expired(&self) {
        tokio::select! {
            () = sleep_until(self.deadline) => {}
            () = self.too_many_requests.notified() => {}
        }
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
    async fn the_oldest_connection_is_closed() {
        let set = Unauthenticated::new(2, limits::UNAUTHENTICATED_TIME);
        let first = set.enter();
        let second = set.enter();
        assert!(!is_closed(&first));
        let third = set.enter();
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
        // A connection that has authenticated or ended does not count.
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
        assert!(entry.expired().now_or_never().is_none());
        entry.count();
        assert!(entry.expired().now_or_never().is_some());
        // The requests that it has already received are answered.
        assert!(!is_closed(&entry));
    }
}
