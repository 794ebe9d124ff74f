//! A work queue. Each key is queued once, no two workers process the same key, and errors are
//! retried with backoff and jitter. A panic on a key counts as an error of that key.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    fmt::Debug,
    future::Future,
    hash::Hash,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use futures::FutureExt;
use longshore_client::Error;
use longshore_clock::{Clock, Component, Newest};
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
/// Retries within this time, by the system's clock, are pending work. After many errors, the delays
/// are longer.
const SOON: Duration = Duration::from_secs(1);

/// Keys to process at later times.
#[derive(Debug)]
struct Later<K> {
    keys: BTreeSet<(Instant, K)>,
    due: HashMap<K, Instant>,
}

impl<K: Clone + Eq + Hash + Ord> Later<K> {
    fn new() -> Self {
        Self {
            keys: BTreeSet::new(),
            due: HashMap::new(),
        }
    }

    /// Adds a key. If the queue contains the key, the earlier time applies.
    fn add(&mut self, key: K, at: Instant) {
        match self.due.get(&key) {
            Some(sooner) if *sooner <= at => return,
            Some(later) => {
                self.keys.remove(&(*later, key.clone()));
            }
            None => {}
        }
        self.keys.insert((at, key.clone()));
        self.due.insert(key, at);
    }

    /// Removes the first key that is due.
    fn take(&mut self, now: Instant) -> Option<K> {
        if self.keys.first().is_none_or(|(at, _)| *at > now) {
            return None;
        }
        let (_, key) = self.keys.pop_first()?;
        self.due.remove(&key);
        Some(key)
    }

    fn next(&self) -> Option<Instant> {
        self.keys.first().map(|(at, _)| *at)
    }

    /// Returns the first key if it is due.
    fn due(&self, now: Instant) -> Option<&K> {
        let first = self.keys.first().filter(|(at, _)| *at <= now);
        first.map(|(_, key)| key)
    }
}

/// The same moment on the cluster's clock and on the system's clock. The two differ only if tests
/// advance the cluster's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times<T> {
    clock: T,
    system: T,
}

/// The keys and the times when they are due. Pure: the current time is an argument.
#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    busy: HashSet<K>,
    /// Keys that were added while a worker processed them.
    dirty: HashSet<K>,
    /// Keys with delays of the cluster's clock.
    later: Later<K>,
    /// Keys with delays of the system's clock, if the cluster has a different clock.
    retries: Later<K>,
    errors: HashMap<K, u32>,
    /// Incremented with each change of the keys.
    steps: u64,
}

impl<K: Clone + Eq + Hash + Ord> State<K> {
    fn new() -> Self {
        Self {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            busy: HashSet::new(),
            dirty: HashSet::new(),
            later: Later::new(),
            retries: Later::new(),
            errors: HashMap::new(),
            steps: 0,
        }
    }

    /// Returns a key that is being processed or is due.
    fn pending(&self, now: Times<Instant>) -> Option<&K> {
        let key = self.busy.iter().next();
        let key = key.or_else(|| self.ready.front());
        let key = key.or_else(|| self.later.due(now.clock));
        key.or_else(|| self.retries.due(now.system))
    }

    fn add(&mut self, key: K) {
        self.steps = self.steps.wrapping_add(1);
        if self.busy.contains(&key) {
            self.dirty.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Returns the next key to process, or the times at which the next keys are due.
    fn take(&mut self, now: Times<Instant>) -> Result<K, Times<Option<Instant>>> {
        while let Some(key) = self.later.take(now.clock) {
            self.add(key);
        }
        while let Some(key) = self.retries.take(now.system) {
            self.add(key);
        }
        let Some(key) = self.ready.pop_front() else {
            return Err(Times {
                clock: self.later.next(),
                system: self.retries.next(),
            });
        };
        self.queued.remove(&key);
        self.busy.insert(key.clone());
        Ok(key)
    }

    fn done(&mut self, key: &K) {
        self.steps = self.steps.wrapping_add(1);
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
    /// Process the key again after this delay, by the cluster's clock.
    After(Duration),
    /// Process the key again after this delay, by the system's clock, because it waits for a cache
    /// or for another check.
    Retry(Duration),
}

/// The queue. It is shared by reference between producers and workers.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    keys: Arc<Keys<K>>,
    wake: Notify,
}

/// The keys of a queue. A manual clock reports their processing as pending work.
#[derive(Debug)]
struct Keys<K> {
    state: Mutex<State<K>>,
    /// The name of the controller, set when it starts to work.
    what: OnceLock<&'static str>,
    clock: Clock,
}

impl<K: Clone + Debug + Eq + Hash + Ord + Send> Component for Keys<K> {
    fn pending(&self, _: &Newest<'_>) -> Option<String> {
        let now = Times {
            clock: self.clock.instant(),
            system: Instant::now() + SOON,
        };
        let state = self.state.lock();
        let key = state.pending(now)?;
        let what = self.what.get().unwrap_or(&"a controller");
        Some(format!("{what} has to process {key:?}"))
    }

    fn steps(&self) -> u64 {
        self.state.lock().steps
    }
}

impl<K: Clone + Debug + Eq + Hash + Ord + Send + 'static> Queue<K> {
    /// Creates an empty queue.
    pub(crate) fn new(clock: &Clock) -> Self {
        let keys = Arc::new(Keys {
            state: Mutex::new(State::new()),
            what: OnceLock::new(),
            clock: clock.clone(),
        });
        let component: Weak<dyn Component> = Arc::downgrade(&keys) as _;
        clock.add(component);
        Self {
            keys,
            wake: Notify::new(),
        }
    }

    /// The clock of the delays.
    pub(crate) fn clock(&self) -> &Clock {
        &self.keys.clock
    }

    /// Adds a key, unless it is already queued.
    pub(crate) fn add(&self, key: K) {
        self.keys.state.lock().add(key);
        self.wake.notify_one();
    }

    async fn next(&self) -> K {
        loop {
            let now = match self.keys.clock.is_manual() {
                true => Times {
                    clock: self.keys.clock.instant(),
                    system: Instant::now(),
                },
                false => {
                    let now = Instant::now();
                    Times {
                        clock: now,
                        system: now,
                    }
                }
            };
            let taken = self.keys.state.lock().take(now);
            match taken {
                Ok(key) => {
                    // Another worker may be asleep although more keys are due.
                    self.wake.notify_one();
                    return key;
                }
                Err(due) => {
                    tokio::select! {
                        () = wait(due.clock, |at| self.keys.clock.sleep_until(at)) => {}
                        () = wait(due.system, tokio::time::sleep_until) => {}
                        () = self.wake.notified() => {}
                    }
                }
            }
        }
    }

    /// Processes keys with `workers` concurrent workers, and never returns. `what`
    /// names the controller in the log.
    pub(crate) async fn work<F, T>(&self, what: &'static str, workers: usize, reconcile: F)
    where
        K: Sync,
        F: Fn(K) -> T + Sync,
        T: Future<Output = Result<Next, Error>> + Send,
    {
        // A controller that restarts keeps its name.
        let _ = self.keys.what.set(what);
        let worker = || async {
            loop {
                let key = self.next().await;
                let begin = self.keys.clock.instant();
                match caught(async { reconcile(key.clone()).await }).await {
                    Ok(outcome) => self.settle(what, key, begin, outcome),
                    Err(panic) => {
                        let wait = self.keys.state.lock().failed(&key, rand::random());
                        tracing::error!(
                            what,
                            ?key,
                            panic,
                            ?wait,
                            "the controller panicked on an object; retrying"
                        );
                        self.release(key, begin, Next::Retry(wait));
                    }
                }
            }
        };
        // Boxed, so that the code that runs them is compiled once for all controllers.
        let workers = (0..workers).map(|_| worker().boxed());
        futures::future::join_all(workers).await;
    }

    fn settle(&self, what: &'static str, key: K, begin: Instant, outcome: Result<Next, Error>) {
        let next = match outcome {
            Ok(next) => {
                self.keys.state.lock().errors.remove(&key);
                next
            }
            Err(error) if is_terminating(&error) => {
                tracing::debug!(what, ?key, %error, "the namespace is terminating; no objects are created in it");
                Next::Done
            }
            Err(error) => {
                let wait = self.keys.state.lock().failed(&key, rand::random());
                if error.is_conflict() {
                    tracing::debug!(what, ?key, %error, ?wait, "the object has changed; retrying");
                } else {
                    tracing::warn!(what, ?key, %error, ?wait, "failed; retrying");
                }
                Next::Retry(wait)
            }
        };
        self.release(key, begin, next);
    }

    /// Ends the processing of a key that began at `begin`. The key is queued again after the delay,
    /// or when it is added.
    fn release(&self, key: K, begin: Instant, next: Next) {
        let mut state = self.keys.state.lock();
        match next {
            Next::Done => {}
            Next::Retry(wait) if self.keys.clock.is_manual() => {
                let at = Instant::now() + wait.min(MAX_REQUEUE_DELAY);
                state.retries.add(key.clone(), at);
            }
            Next::After(wait) | Next::Retry(wait) => {
                let at = self.keys.clock.due(begin, wait.min(MAX_REQUEUE_DELAY));
                state.later.add(key.clone(), at);
            }
        }
        state.done(&key);
        drop(state);
        self.wake.notify_one();
    }
}

/// Waits until a time, or forever without one.
async fn wait<F: Future<Output = ()>>(at: Option<Instant>, sleep: impl FnOnce(Instant) -> F) {
    match at {
        Some(at) => sleep(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Runs the queue until `done` returns true.
    async fn work_until<T: Future<Output = Result<Next, Error>> + Send>(
        queue: &Queue<&'static str>,
        reconcile: impl Fn(&'static str) -> T + Sync,
        done: &Notify,
    ) {
        tokio::select! {
            () = queue.work("test", 2, reconcile) => {}
            () = done.notified() => {}
        }
    }

    #[tokio::test]
    async fn a_panic_on_one_key_is_retried_and_does_not_affect_others() {
        let (queue, done) = (Queue::new(&Clock::system()), Notify::new());
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

    fn both<T: Copy>(time: T) -> Times<T> {
        Times {
            clock: time,
            system: time,
        }
    }

    /// Delays are measured by a manual clock, even if it is advanced while a key is processed.
    /// Errors are retried although the manual clock stands still.
    #[tokio::test]
    async fn delays_are_those_of_a_manual_clock() {
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let queue = Queue::new(&clock);
        let minute = Duration::from_secs(60);
        let begin = clock.instant();
        for key in ["first", "second"] {
            queue.add(key);
            assert_eq!(queue.next().await, key);
        }
        queue.settle("test", "second", begin, Ok(Next::After(3 * minute)));
        clock.advance(minute).unwrap();
        queue.settle("test", "first", begin, Ok(Next::After(2 * minute)));
        queue.add("failed");
        assert_eq!(queue.next().await, "failed");
        queue.settle("test", "failed", begin, Err(Error::Invalid("no".into())));
        assert_eq!(queue.next().await, "failed");
        clock.advance(minute).unwrap();
        assert_eq!(queue.next().await, "first");
        clock.advance(minute).unwrap();
        assert_eq!(queue.next().await, "second");
    }

    /// `activeDeadlineSeconds: 9223372036854775807` results in such a delay.
    #[tokio::test]
    async fn the_queue_limits_long_delays() {
        let queue = Queue::new(&Clock::system());
        for (key, wait) in [
            ("most", Duration::MAX),
            ("many", Duration::from_secs(i64::MAX.unsigned_abs())),
            ("some", Duration::from_secs(7)),
        ] {
            queue.add(key);
            assert_eq!(queue.next().await, key);
            queue.settle("test", key, Instant::now(), Ok(Next::After(wait)));
        }
        let latest = Instant::now() + MAX_REQUEUE_DELAY;
        let state = queue.keys.state.lock();
        assert_eq!(state.later.due.len(), 3);
        assert!(state.later.due.values().all(|due| *due <= latest));
    }

    #[test]
    fn each_key_is_queued_once_and_processed_by_one_worker() {
        let now = both(Instant::now());
        let nothing = Err(both(None));
        let mut state = State::new();
        state.add("a");
        state.add("b");
        state.add("a");
        assert_eq!(state.take(now), Ok("a"));
        // A key added while it is processed is processed again, once.
        state.add("a");
        state.add("a");
        assert_eq!(state.take(now), Ok("b"));
        assert_eq!(state.take(now), nothing);
        state.done(&"a");
        assert_eq!(state.take(now), Ok("a"));
        state.done(&"a");
        state.done(&"b");
        assert_eq!(state.take(now), nothing);
    }

    #[test]
    fn the_earliest_time_applies() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut state = State::new();
        state.later.add("a", at(5));
        state.later.add("a", at(9));
        state.later.add("b", at(7));
        let until = |at| {
            Err(Times {
                clock: Some(at),
                system: None,
            })
        };
        assert_eq!(state.take(both(now)), until(at(5)));
        state.later.add("b", at(2));
        assert_eq!(state.take(both(at(1))), until(at(2)));
        assert_eq!(state.take(both(at(6))), Ok("b"));
        assert_eq!(state.take(both(at(6))), Ok("a"));
        assert_eq!(state.take(both(at(99))), Err(both(None)));
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
    /// A key is pending work while it is due, queued or processed.
    #[tokio::test]
    async fn keys_that_are_due_are_pending_work() {
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let queue = Queue::new(&clock);
        let pending = || clock.pending(&|_, _| 0);
        let minute = Duration::from_secs(60);
        assert_eq!(pending(), Vec::<String>::new());
        let before = clock.steps();
        queue.add("a");
        assert_eq!(pending(), [r#"a controller has to process "a""#]);
        let begin = clock.instant();
        assert_eq!(queue.next().await, "a");
        assert_eq!(pending().len(), 1, "it is processed");
        queue.settle("test", "a", begin, Ok(Next::After(minute)));
        assert_eq!(pending(), Vec::<String>::new());
        assert!(clock.steps() > before);
        clock.advance(minute).unwrap();
        assert_eq!(pending().len(), 1, "it is due");
        assert_eq!(queue.next().await, "a");
        queue.settle("test", "a", begin, Ok(Next::Retry(SOON / 2)));
        assert_eq!(pending().len(), 1, "it is retried soon");
        assert_eq!(queue.next().await, "a");
        queue.settle("test", "a", begin, Ok(Next::Retry(SOON * 60)));
        assert_eq!(pending(), Vec::<String>::new());
        drop(queue);
        assert_eq!(pending(), Vec::<String>::new());
    }
}
