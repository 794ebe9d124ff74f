//! The threads that start containers' processes.
//!
//! They live as long as the agent, because the kernel sends the parent-death signal when the parent
//! *thread* ends. A thread waits while the child sets up the container. There are several, so that
//! mounts of a volume that does not answer block only one of them. Each thread starts when it is
//! first needed.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{
    child::{self, Program, Stack},
    pipe, process,
    start_error::StartError,
};
use crate::cgroups::Group;

pub(super) struct Request {
    pub(super) program: Program,
    pub(super) answer: oneshot::Sender<Result<Child, StartError>>,
    pub(super) entering: Option<OwnedSemaphorePermit>,
    // Kept open until the child has its own copies.
    pub(super) streams: [OwnedFd; 3],
    pub(super) _others: Vec<OwnedFd>,
}

/// A child that is handed from the thread to the requester. If the requester
/// was dropped, the child is killed.
pub(super) struct Child {
    pub(super) pid: Pid,
    pub(super) descriptor: Option<OwnedFd>,
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(descriptor) = &self.descriptor {
            let _ = rustix::process::pidfd_send_signal(descriptor, Signal::KILL);
            process::end(descriptor);
        }
    }
}

fn kill_and_reap(pid: Pid) {
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
}

/// The maximum number of containers that are set up at the same time, excluding setups that take
/// long.
const THREADS: usize = 8;
/// The time after which the setup of a container takes long, and another thread replaces its
/// thread.
const LONG: Duration = Duration::from_secs(1);
/// The maximum number of threads, including threads that wait for file systems that do not answer.
const MAX_THREADS: usize = 256;

type Queue = Arc<Mutex<mpsc::Receiver<Request>>>;

/// A thread that starts processes.
struct Worker {
    handle: JoinHandle<()>,
    /// The time since which the thread sets up a container.
    busy: Arc<Mutex<Option<Instant>>>,
}

impl Worker {
    /// Starts a thread, which reduces `waiting` by one for each request that it has processed.
    fn start(queue: Queue, waiting: Arc<AtomicUsize>) -> io::Result<Self> {
        let busy = Arc::<Mutex<Option<Instant>>>::default();
        let state = Arc::clone(&busy);
        let mut stack = Stack::new()?;
        let handle = std::thread::Builder::new()
            .name("longshore-spawn".to_owned())
            .spawn(move || {
                child::block_signals();
                loop {
                    // The lock is held until the next request arrives.
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(request) = next else { return };
                    set(&state, Some(Instant::now()));
                    let _ = request
                        .answer
                        .send(start_child(&request.program, &mut stack));
                    // The container may use the streams already.
                    pipe::close(request.streams);
                    drop(request.entering);
                    set(&state, None);
                    waiting.fetch_sub(1, Ordering::Relaxed);
                }
            })?;
        Ok(Self { handle, busy })
    }
}

fn set(state: &Mutex<Option<Instant>>, since: Option<Instant>) {
    *state.lock().unwrap_or_else(PoisonError::into_inner) = since;
}

impl Worker {
    fn busy_since(&self) -> Option<Instant> {
        *self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads, and the requests for them.
pub(super) struct Workers {
    requests: mpsc::Sender<Request>,
    queue: Queue,
    /// The number of requests that are not processed.
    waiting: Arc<AtomicUsize>,
    started: Mutex<Vec<Worker>>,
}

impl Workers {
    pub(super) fn new() -> Self {
        let (requests, queue) = mpsc::channel();
        Self {
            requests,
            queue: Arc::new(Mutex::new(queue)),
            waiting: Arc::default(),
            started: Mutex::default(),
        }
    }

    /// Sends a request to a thread, and starts another thread if all are occupied.
    pub(super) fn send(&self, request: Request) -> io::Result<()> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.add_thread() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(error);
        }
        let sent = self.requests.send(request);
        sent.map_err(|_| io::Error::other("the node agent is stopping"))
    }

    /// Starts another thread if all are occupied, unless many of them are occupied only for a short
    /// time.
    fn add_thread(&self) -> io::Result<()> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let long = started.iter().filter_map(Worker::busy_since);
        let long = long.filter(|since| since.elapsed() >= LONG).count();
        let limit = MAX_THREADS.min(THREADS + long);
        if self.waiting.load(Ordering::Relaxed) <= started.len() || started.len() >= limit {
            return Ok(());
        }
        match Worker::start(self.queue.clone(), self.waiting.clone()) {
            Ok(worker) => started.push(worker),
            Err(error) if started.is_empty() => return Err(error),
            Err(error) => tracing::debug!(%error, "no other thread starts processes"),
        }
        Ok(())
    }

    /// Waits for the answer to a request.
    pub(super) async fn answered(
        &self,
        mut answer: oneshot::Receiver<Result<Child, StartError>>,
    ) -> Option<Result<Child, StartError>> {
        loop {
            match tokio::time::timeout(LONG, &mut answer).await {
                Ok(answer) => return answer.ok(),
                // The request may wait for a thread, and no other request may arrive.
                Err(_) => _ = self.add_thread(),
            }
        }
    }

    /// Ends the threads.
    pub(super) fn end(self) {
        drop(self.requests);
        // Threads end immediately unless they set up a container. The end of the process ends
        // those, too.
        let started = self.started.into_inner();
        let started = started.unwrap_or_else(PoisonError::into_inner).into_iter();
        for worker in started.filter(|worker| worker.busy_since().is_none()) {
            let _ = worker.handle.join();
        }
    }
}

/// Adds the name of the limit that a process has reached.
fn with_remedy(error: io::Error) -> io::Error {
    let limit = match error.raw_os_error() {
        Some(libc::EAGAIN) => {
            "the machine or the user has no processes left (kernel.pid_max, `ulimit -u`, or a cgroup)"
        }
        Some(libc::ENOSPC | libc::EUSERS) => {
            "the user has no namespaces left (/proc/sys/user/max_*_namespaces)"
        }
        _ => return error,
    };
    let text = format!("{error}: {limit}; end other programs, or raise the limit");
    io::Error::new(error.kind(), text)
}

fn start_child(program: &Program, stack: &mut Stack) -> Result<Child, StartError> {
    let error = |code: i32| StartError::System(with_remedy(io::Error::from_raw_os_error(code)));
    let number = child::start(program, stack).map_err(error)?;
    let pid = Pid::from_raw(number).ok_or_else(|| error(libc::ESRCH))?;
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(descriptor) => Ok(Child {
            pid,
            descriptor: Some(descriptor),
        }),
        Err(refused) => {
            kill_and_reap(pid);
            Err(StartError::System(refused.into()))
        }
    }
}

/// Opens the files through which a process joins a cgroup. A failure does not prevent the start.
pub(super) fn cgroup_files(group: Option<&Group>) -> Vec<OwnedFd> {
    let files = group.map(Group::open).transpose();
    let files = files.unwrap_or_else(|error| {
        tracing::debug!(%error, "a cgroup cannot be joined");
        None
    });
    files.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_limit_is_named() {
        let text = |code| with_remedy(io::Error::from_raw_os_error(code)).to_string();
        assert!(text(libc::EAGAIN).contains("kernel.pid_max"));
        assert!(text(libc::ENOSPC).contains("/proc/sys/user/max_"));
        assert!(!text(libc::EPERM).contains("limit"));
    }
}
