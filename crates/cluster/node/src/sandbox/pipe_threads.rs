//! Threads for the system calls on pipes that containers use.
//!
//! Linux holds a pipe's lock while a process splices from a socket to the pipe or back, which lasts
//! as long as the peer of the socket sends nothing. Each `read`, `write` and last `close` of the
//! pipe waits for the lock, uninterruptibly and despite `O_NONBLOCK`, until the process ends. On
//! the runtime's workers, such a process would stop the whole agent.
//!
//! A single thread, the leader, runs all jobs, which take microseconds each. If the leader is stuck
//! in a job, another thread becomes the leader, so each stuck pipe has a thread, and idle pipes
//! have none.

use std::{
    collections::VecDeque,
    io,
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::runtime::Handle;

use super::child;

/// The duration of a job after which another thread runs the next job.
const STALL_TIME: Duration = Duration::from_millis(10);
/// The time for which a thread waits for jobs before it ends.
const IDLE_TIME: Duration = Duration::from_secs(10);
/// The interval of attempts to start a thread while the system has no resources for one.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The stack of a thread; jobs are single system calls.
const STACK_BYTES: usize = 128 * 1024;

type Job = Box<dyn FnOnce() + Send>;

static THREADS: LazyLock<PipeThreads> = LazyLock::new(PipeThreads::default);

/// Runs a job on another thread.
pub(super) fn submit(job: impl FnOnce() + Send + 'static) {
    THREADS.submit(Box::new(job));
}

struct PipeThreads {
    state: Mutex<State>,
    submitted: Condvar,
    /// True while a task tries to start a thread.
    is_retrying: AtomicBool,
    /// The function that starts a thread.
    spawn: fn(Job) -> io::Result<()>,
}

impl Default for PipeThreads {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            submitted: Condvar::default(),
            is_retrying: AtomicBool::new(false),
            spawn,
        }
    }
}

fn spawn(job: Job) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("longshore-pipes".to_owned());
    thread.stack_size(STACK_BYTES).spawn(job).map(drop)
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// The thread that runs the jobs, and the time at which it took the latest job.
    leader: Option<(u64, Instant)>,
    /// The number of threads without a job.
    idle: usize,
    /// The number of idle threads that watch whether the leader is stuck.
    watching: usize,
    started: u64,
    /// The runtime of the latest job.
    runtime: Option<Handle>,
}

impl State {
    fn is_led_by(&self, thread: u64) -> bool {
        self.leader.is_some_and(|(leader, _)| leader == thread)
    }

    /// Returns true if no thread will take the next job soon.
    fn needs_leader(&self) -> bool {
        self.leader
            .is_none_or(|(_, taken)| taken.elapsed() >= STALL_TIME)
    }
}

/// Attempts to start a thread. They end at the latest with the runtime.
struct Retrying(&'static PipeThreads);

impl Drop for Retrying {
    fn drop(&mut self) {
        self.0.is_retrying.store(false, Ordering::Relaxed);
    }
}

impl PipeThreads {
    fn submit(&'static self, job: Job) {
        let mut state = self.state.lock();
        if let Ok(runtime) = Handle::try_current() {
            state.runtime = Some(runtime);
        }
        state.jobs.push_back(job);
        let has_thread = self.ensure_idle_thread(&mut state);
        if !has_thread && state.needs_leader() && Handle::try_current().is_err() {
            // This thread may get stuck, unlike a thread of the runtime.
            let job = state.jobs.pop_back();
            drop(state);
            if let Some(job) = job {
                job();
            }
        } else if state.needs_leader() || state.watching == 0 {
            self.submitted.notify_one();
        }
    }

    /// Returns true if a thread can take a job even if the leader is stuck. Otherwise the system
    /// has no resources for a thread, and one is started as soon as possible.
    fn ensure_idle_thread(&'static self, state: &mut State) -> bool {
        if state.idle > 0 || self.start_thread(state) {
            return true;
        }
        if let Some(runtime) = &state.runtime
            && !self.is_retrying.swap(true, Ordering::Relaxed)
        {
            let retrying = Retrying(self);
            runtime.spawn(async move {
                loop {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    let mut state = retrying.0.state.lock();
                    if state.jobs.is_empty() || state.idle > 0 || self.start_thread(&mut state) {
                        // Done while the state is locked, so that the next attempts are not missed.
                        self.is_retrying.store(false, Ordering::Relaxed);
                        self.submitted.notify_one();
                        return;
                    }
                }
            });
        }
        false
    }

    fn start_thread(&'static self, state: &mut State) -> bool {
        let number = state.started;
        let thread = (self.spawn)(Box::new(move || {
            // A stuck thread could not handle signals.
            child::block_signals();
            self.run(number);
        }));
        match thread {
            Ok(()) => {
                state.started += 1;
                state.idle += 1;
                true
            }
            Err(error) => {
                if !self.is_retrying.load(Ordering::Relaxed) {
                    tracing::warn!(%error, "cannot start a thread that reads containers' output");
                }
                false
            }
        }
    }

    fn run(&'static self, thread: u64) {
        let mut state = self.state.lock();
        loop {
            let leads = state.is_led_by(thread);
            if (leads || state.needs_leader())
                && let Some(job) = state.jobs.pop_front()
            {
                if !leads {
                    state.idle -= 1;
                }
                state.leader = Some((thread, Instant::now()));
                self.ensure_idle_thread(&mut state);
                MutexGuard::unlocked(&mut state, job);
                if !state.is_led_by(thread) {
                    // The thread was stuck, and another one leads.
                    state.idle += 1;
                }
                continue;
            }
            if leads {
                state.leader = None;
                state.idle += 1;
            }
            if !self.wait(&mut state) {
                state.idle -= 1;
                return;
            }
        }
    }

    /// Waits for something to do. Returns false if the thread must end.
    fn wait(&self, state: &mut MutexGuard<'_, State>) -> bool {
        let left = state
            .leader
            .map(|(_, taken)| STALL_TIME.saturating_sub(taken.elapsed()));
        match left.filter(|left| !left.is_zero()) {
            Some(left) => {
                state.watching += 1;
                self.submitted.wait_for(state, left);
                state.watching -= 1;
                true
            }
            None => {
                let waited = self.submitted.wait_for(state, IDLE_TIME);
                !(waited.timed_out() && state.jobs.is_empty() && state.needs_leader())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc;

    use super::*;

    fn threads() -> &'static PipeThreads {
        Box::leak(Box::default())
    }

    #[test]
    fn stuck_jobs_do_not_delay_others() {
        let threads = threads();
        let (sender, done) = mpsc::channel();
        let mut stuck = Vec::new();
        for number in 0..50 {
            let (release, released) = mpsc::channel::<()>();
            stuck.push(release);
            threads.submit(Box::new(move || _ = released.recv()));
            let sender = sender.clone();
            threads.submit(Box::new(move || _ = sender.send(number)));
            assert_eq!(done.recv_timeout(Duration::from_secs(60)).unwrap(), number);
        }
        // The stuck threads, a leader, and the thread that watches it. A busy machine can delay
        // others.
        let started = threads.state.lock().started;
        assert!((52..70).contains(&started), "{started}");
        // The threads that were stuck also run later jobs.
        drop(stuck);
        for number in 0..1000 {
            let sender = sender.clone();
            threads.submit(Box::new(move || _ = sender.send(number)));
        }
        let next = |_| done.recv_timeout(Duration::from_secs(5)).unwrap();
        let mut all: Vec<u32> = (0..1000).map(next).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
    }

    /// Threads cannot be started for some time, while the only one is stuck.
    #[tokio::test]
    async fn without_threads_jobs_wait_and_the_runtime_does_not() {
        static IS_EXHAUSTED: AtomicBool = AtomicBool::new(false);
        let limited = |job| match IS_EXHAUSTED.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => spawn(job),
        };
        let threads: &PipeThreads = Box::leak(Box::new(PipeThreads {
            spawn: limited,
            ..PipeThreads::default()
        }));
        let (release, released) = mpsc::channel::<()>();
        let released = std::sync::Mutex::new(released);
        let released: &'static _ = Box::leak(Box::new(released));
        // A leader and the thread that watches it get stuck.
        let (sender, mut done) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..3 {
            let sender = sender.clone();
            threads.submit(Box::new(move || {
                let _ = sender.send(number);
                let _ = released.lock().unwrap().recv();
            }));
            if number == 0 {
                assert_eq!(done.recv().await, Some(0));
                IS_EXHAUSTED.store(true, Ordering::Relaxed);
            }
        }
        let wait = tokio::time::timeout(Duration::from_secs(60), done.recv());
        assert_eq!(wait.await.unwrap(), Some(1));
        tokio::time::sleep(3 * STALL_TIME).await;
        threads.submit(Box::new(move || _ = sender.send(3)));
        // No thread can run the jobs, but this task continues.
        assert!(done.try_recv().is_err());
        IS_EXHAUSTED.store(false, Ordering::Relaxed);
        for expected in [2, 3] {
            let wait = tokio::time::timeout(Duration::from_secs(60), done.recv());
            assert_eq!(wait.await.unwrap(), Some(expected));
        }
        drop(release);
    }

    #[test]
    fn quick_jobs_share_one_thread() {
        let threads = threads();
        let (sender, done) = mpsc::channel();
        for _ in 0..200 {
            let sender = sender.clone();
            threads.submit(Box::new(move || {
                _ = sender.send(std::thread::current().id())
            }));
        }
        for _ in 0..200 {
            done.recv_timeout(Duration::from_secs(5)).unwrap();
        }
        // The leader and the thread that watches it; a busy machine can delay a leader.
        assert!(threads.state.lock().started < 20);
    }
}
