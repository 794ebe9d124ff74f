//! A handle to a container's process: waits for its exit and sends signals.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use tokio::io::{Interest, unix::AsyncFd};

use super::child::{KILL_ALL, register};

/// A container's init process. Dropping it kills and reaps the container.
#[derive(Debug)]
pub(crate) struct Process {
    pid: Pid,
    descriptor: AsyncFd<OwnedFd>,
    own_processes: bool,
    reaped: std::sync::atomic::AtomicBool,
}

impl Process {
    pub(super) fn new(pid: Pid, descriptor: OwnedFd, own_processes: bool) -> io::Result<Self> {
        Ok(Self {
            pid,
            descriptor: register(descriptor, Interest::READABLE)?,
            own_processes,
            reaped: false.into(),
        })
    }

    /// Returns the process id on the machine.
    pub(crate) fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Returns the process's file descriptor (pidfd).
    pub(super) fn descriptor(&self) -> &OwnedFd {
        self.descriptor.get_ref()
    }

    /// Waits for the exit; returns the exit code, or 128 + the number of the
    /// signal that ended the process.
    pub(crate) async fn wait(&self) -> i32 {
        // An error means that the runtime is shutting down: wait synchronously.
        let _ = self.descriptor.readable().await;
        self.reap()
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
            // Reaped elsewhere in this process: the exit code is lost.
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
            self.reap();
        }
    }
}
