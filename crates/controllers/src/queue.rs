//! A work queue: each key is queued once, no two workers process the same key, and
//! errors are retried with backoff and jitter. A panic on a key counts as an error
//! of that key.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    fmt::Debug,
    future::Future,
    hash::Hash,
    time::Duration,
};

use longshore_client::Error;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::{guard::caught, refusal::is_terminating};

/// The delay after the first error.
const INITIAL_BACKOFF: Duration = Duration::from_millis(10);
/// The maximum delay after errors.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// The maximum delay that a worker can request. Objects can contain arbitrarily
/// large numbers of seconds.
const MAX_REQUEUE_DELAY: Duration = Duration::from_hours(24);

/// The keys and the times when they are due. Pure: the current time is an argument.
#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    busy: HashSet<K>,
    /// Keys that were added while a worker processed them.
    dirty: HashSet<K>,
    later: BTreeSet<(Instant, K)>,
    due: HashMap<K, Instant>,
    errors: HashMap<K, u32>,
}

impl<K: Clone + Eq + Hash + Ord> State<K> {
    fn new() -> Self {
        Self {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            busy: HashSet::new(),
            dirty: HashSet::new(),
            later: BTreeSet::new(),
            due: HashMap::new(),
            errors: HashMap::new(),
        }
    }

    fn add(&mut self, key: K) {
        if self.busy.contains(&key) {
            self.dirty.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Adds the key for a later time. If the key is already queued, the earlier
    /// time applies.
    fn add_at(&mut self, key: K, at: Instant) {
        match self.due.get(&key) {
            Some(sooner) if *sooner <= at => return,
            Some(later) => {
                self.later.remove(&(*later, key.clone()));
            }
            None => {}
        }
        self.later.insert((at, key.clone()));
        self.due.insert(key, at);
    }

    /// Returns the next key to process, or the time when the next key is due.
    fn take(&mut self, now: Instant) -> Result<K, Option<Instant>> {
        while let Some((at, _)) = self.later.first()
            && *at <= now
            && let Some((_, key)) = self.later.pop_first()
        {
            self.due.remove(&key);
            self.add(key);
        }
        let Some(key) = self.ready.pop_front() else {
            return Err(self.later.first().map(|(at, _)| *at));
        };
        self.queued.remove(&key);
        self.busy.insert(key.clone());
        Ok(key)
    }

    fn done(&mut self, key: &K) {
        self.busy.remove(key);
        if self.dirty.remove(key) {
            self.add(key.clone());
        }
    }

    /// Returns the delay after another error. `chance` between 0 and 1 adds jitter.
    fn failed(&mut self, key: &K, chance: f64) -> Duration {
        let errors = self.errors.entry(key.clone()).or_insert(0);
        *errors = errors.saturating_add(1);
        let wait = INITIAL_BACKOFF
            .saturating_mul(2_u32.saturating_pow(*errors - 1))
            .min(MAX_BACKOFF);
        wait.mul_f64(0.5 + chance / 2.0)
    }
}

/// The result of processing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing to do until something changes.
    Done,
    /// Process the key again after this delay.
    After(Duration),
}

/// The queue. It is shared by reference between producers and workers.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    wake: Notify,
}

impl<K: Clone + Debug + Eq + Hash + Ord> Queue<K> {
    /// Creates an empty queue.
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State::new()),
            wake: Notify::new(),
        }
    }

    /// Adds a key, unless it is already queued.
    pub(crate) fn add(&self, key: K) {
        self.state.lock().add(key);
        self.wake.notify_one();
    }

    fn add_after(&self, key: K, wait: Duration) {
        let at = Instant::now() + wait.min(MAX_REQUEUE_DELAY);
        self.state.lock().add_at(key, at);
        self.wake.notify_one();
    }

    async fn next(&self) -> K {
        loop {
            let taken = self.state.lock().take(Instant::now());
            match taken {
                Ok(key) => {
                    // Another worker may be asleep although more keys are due.
                    self.wake.notify_one();
                    return key;
                }
                Err(Some(at)) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(at) => {}
                        () = self.wake.notified() => {}
                    }
                }
                Err(None) => self.wake.notified().await,
            }
        }
    }

    /// Processes keys with `workers` concurrent workers, and never returns. `what`
    /// names the controller in the log.
    pub(crate) async fn work<F, T>(&self, what: &'static str, workers: usize, reconcile: F)
    where
        F: Fn(K) -> T,
        T: Future<Output = Result<Next, Error>>,
    {
        let worker = || async {
            loop {
                let key = self.next().await;
                match caught(async { reconcile(key.clone()).await }).await {
                    Ok(outcome) => self.settle(what, key, outcome),
                    Err(panic) => {
                        let wait = self.state.lock().failed(&key, rand::random());
                        tracing::error!(
                            what,
                            ?key,
                            panic,
                            ?wait,
                            "the controller panicked on an object; retrying"
                        );
                        self.release(key, Some(wait));
                    }
                }
            }
        };
        futures::future::join_all((0..workers).map(|_| worker())).await;
    }

    fn settle(&self, what: &'static str, key: K, outcome: Result<Next, Error>) {
        let wait = match outcome {
            Ok(next) => {
                self.state.lock().errors.remove(&key);
                match next {
                    Next::Done => None,
                    Next::After(wait) => Some(wait),
                }
            }
            Err(error) if is_terminating(&error) => {
                tracing::debug!(what, ?key, %error, "the namespace is terminating; no objects are created in it");
                None
            }
            Err(error) => {
                let wait = self.state.lock().failed(&key, rand::random());
                if error.is_conflict() {
                    tracing::debug!(what, ?key, %error, ?wait, "the object has changed; retrying");
                } else {
                    tracing::warn!(what, ?key, %error, ?wait, "failed; retrying");
                }
                Some(wait)
            }
        };
        self.release(key, wait);
    }

    /// Ends the processing of the key. It is queued again after the delay, or when
    /// it is added.
    fn release(&self, key: K, wait: Option<Duration>) {
        if let Some(wait) = wait {
            self.add_after(key.clone(), wait);
        }
        self.state.lock().done(&key);
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Runs the queue until `done` returns true.
    async fn work_until<T: Future<Output = Result<Next, Error>>>(
        queue: &Queue<&'static str>,
        reconcile: impl Fn(&'static str) -> T,
        done: &Notify,
    ) {
        tokio::select! {
            () = queue.work("test", 2, reconcile) => {}
            () = done.notified() => {}
        }
    }

    #[tokio::test]
    async fn a_panic_on_one_key_is_retried_and_does_not_affect_others() {
        let (queue, done) = (Queue::new(), Notify::new());
        let (bad, good) = (AtomicU32::new(0), AtomicU32::new(0));
        queue.add("bad");
        queue.add("good");
        let reconcile = async |key| {
            if key == "good" {
                good.fetch_add(1, Ordering::Relaxed);
                return Ok(Next::Done);
            }
            assert!(bad.fetch_add(1, Ordering::Relaxed) >= 3, "the test's panic");
            done.notify_one();
            Ok(Next::Done)
        };
        work_until(&queue, reconcile, &done).await;
        assert_eq!(good.load(Ordering::Relaxed), 1);
        assert_eq!(bad.load(Ordering::Relaxed), 4);
    }

    /// `activeDeadlineSeconds: 9223372036854775807` leads to such a delay.
    #[tokio::test]
    async fn the_queue_limits_long_delays() {
        let queue = Queue::new();
        for (key, wait) in [
            ("most", Duration::MAX),
            ("many", Duration::from_secs(i64::MAX.unsigned_abs())),
            ("some", Duration::from_secs(7)),
        ] {
            queue.add(key);
            assert_eq!(queue.next().await, key);
            queue.settle("test", key, Ok(Next::After(wait)));
        }
        let latest = Instant::now() + MAX_REQUEUE_DELAY;
        let state = queue.state.lock();
        assert_eq!(state.due.len(), 3);
        assert!(state.due.values().all(|due| *due <= latest));
    }

    #[test]
    fn each_key_is_queued_once_and_processed_by_one_worker() {
        let now = Instant::now();
        let mut state = State::new();
        state.add("a");
        state.add("b");
        state.add("a");
        assert_eq!(state.take(now), Ok("a"));
        // A key added while it is processed is processed again, once.
        state.add("a");
        state.add("a");
        assert_eq!(state.take(now), Ok("b"));
        assert_eq!(state.take(now), Err(None));
        state.done(&"a");
        assert_eq!(state.take(now), Ok("a"));
        state.done(&"a");
        state.done(&"b");
        assert_eq!(state.take(now), Err(None));
    }

    #[test]
    fn the_earliest_time_applies() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut state = State::new();
        state.add_at("a", at(5));
        state.add_at("a", at(9));
        state.add_at("b", at(7));
        assert_eq!(state.take(now), Err(Some(at(5))));
        state.add_at("b", at(2));
        assert_eq!(state.take(at(1)), Err(Some(at(2))));
        assert_eq!(state.take(at(6)), Ok("b"));
        assert_eq!(state.take(at(6)), Ok("a"));
        assert_eq!(state.take(at(99)), Err(None));
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum() {
        let mut state: State<&str> = State::new();
        let waits: Vec<u128> = (0..4)
            .map(|_| state.failed(&"a", 1.0).as_millis())
            .collect();
        assert_eq!(waits, [10, 20, 40, 80]);
        assert_eq!(state.failed(&"b", 0.0).as_millis(), 5);
        for _ in 0..40 {
            state.failed(&"a", 1.0);
        }
        assert_eq!(state.failed(&"a", 1.0), MAX_BACKOFF);
    }
}
