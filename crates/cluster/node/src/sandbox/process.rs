//! A handle to a container's process, which waits for its exit and sends signals.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{AbortHandle, JoinHandle},
};

use super::child::{KILL_ALL, register};

/// The number of commands that can be entering a container at the same time.
const ENTERING: usize = 4;
/// The time for which a thread of the runtime waits for the end of a killed process.
const SHORTLY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// The stack of a thread that only waits.
const REAPER_STACK: usize = 64 << 10;

/// The answers to a container's calls. Dropping the value ends them.
#[derive(Debug)]
pub(super) struct Supervision(Option<AbortHandle>);

impl Supervision {
    pub(super) fn of(task: &JoinHandle<()>) -> Self {
        Self(Some(task.abort_handle()))
    }

    /// Continues the answers until the last process that may call has ended, because a command in a
    /// container can leave processes that run after it.
    pub(super) fn until_over(mut self) {
        self.0 = None;
    }
}

impl Drop for Supervision {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// A container's init process. Dropping it kills the container, and reaps it.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    descriptor: AsyncFd<OwnedFd>,
    own_processes: bool,
    /// Permits for commands that are entering the container.
    entering: Arc<Semaphore>,
    /// Answers the calls of the container.
    supervision: Option<Supervision>,
    reaped: std::sync::atomic::AtomicBool,
}

impl Process {
    pub(super) fn new(pid: Pid, descriptor: OwnedFd, own_processes: bool) -> io::Result<Self> {
        Ok(Self {
            pid,
            descriptor: register(descriptor, Interest::READABLE)?,
            own_processes,
            entering: Arc::new(Semaphore::new(ENTERING)),
            supervision: None,
            reaped: false.into(),
        })
    }

    /// Waits until a command may enter the container. A container whose files do not answer blocks
    /// only a few of the threads that start processes.
    pub(super) async fn enter(&self) -> io::Result<OwnedSemaphorePermit> {
        let permit = self.entering.clone().acquire_owned().await;
        permit.map_err(io::Error::other)
    }

    /// Ends the answers to the container's calls with this value.
    pub(super) fn supervise(&mut self, supervision: Supervision) {
        self.supervision = Some(supervision);
    }

    /// Returns the process id on the machine.
    pub(crate) fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Returns the process's file descriptor (pidfd).
    pub(super) fn descriptor(&self) -> &OwnedFd {
        self.descriptor.get_ref()
    }

    /// Waits for the exit. Returns the exit code, or 128 + the number of the signal that ended the
    /// process.
    pub(crate) async fn wait(&self) -> i32 {
        match self.descriptor.readable().await {
            Ok(_) => self.reap(),
            // The runtime is shutting down.
            Err(_) => {
                wait_shortly(self.descriptor());
                137
            }
        }
    }

    fn reap(&self) -> i32 {
        let status = waitid(
            WaitId::PidFd(self.descriptor.get_ref().as_fd()),
            WaitIdOptions::EXITED,
        );
        self.reaped
            .store(true, std::sync::atomic::Ordering::Release);
        match status {
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => code,
                (None, Some(signal)) => 128 + signal,
                (None, None) => 137,
            },
            // The process was reaped elsewhere in this process, so the exit code is lost.
            _ => 137,
        }
    }

    /// Sends TERM to the container's command.
    pub(crate) fn terminate(&self) {
        self.send(Signal::TERM);
    }

    /// Kills every process of the container.
    pub(crate) fn kill(&self) {
        if self.own_processes {
            self.send(Signal::KILL);
        } else if let Some(signal) = Signal::from_named_raw(KILL_ALL) {
            self.send(signal);
        }
    }

    fn send(&self, signal: Signal) {
        if !self.reaped.load(std::sync::atomic::Ordering::Acquire) {
            // Fails only if the process has ended.
            let _ = pidfd_send_signal(self.descriptor.get_ref(), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !*self.reaped.get_mut() {
            self.kill();
            end(self.descriptor());
        }
    }
}

/// Reaps a killed process. If it does not end immediately, a thread waits for it, because a process
/// that waits for a file system that does not answer cannot be killed.
pub(super) fn end(descriptor: &OwnedFd) {
    if wait_shortly(descriptor) {
        reap(descriptor);
        return;
    }
    let Ok(descriptor) = descriptor.try_clone() else {
        return;
    };
    let thread = std::thread::Builder::new().name("longshore-reap".to_owned());
    let waiting = thread
        .stack_size(REAPER_STACK)
        .spawn(move || reap(&descriptor));
    if let Err(error) = waiting {
        tracing::warn!(%error, "a process that was killed has not ended");
    }
}

fn reap(descriptor: &OwnedFd) {
    let _ = waitid(WaitId::PidFd(descriptor.as_fd()), WaitIdOptions::EXITED);
}

/// Waits a short time for the end of a killed process. Returns false if it has not ended.
fn wait_shortly(descriptor: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
    poll(&mut polled, Some(&SHORTLY)).is_ok_and(|ready| ready > 0)
}
