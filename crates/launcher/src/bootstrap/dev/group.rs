//! The processes of the command, in a process group of their own.

use std::{io, os::unix::process::CommandExt as _, process::Command};

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};

/// The running command.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
}

impl Group {
    /// Starts the command.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::other("the command has no process id"))?;
        Ok(Self { leader })
    }

    /// Sends a signal to all its processes.
    pub(super) fn signal(&self, signal: Signal) {
        // They may have just ended.
        let _ = kill_process_group(self.leader, signal);
        if signal != Signal::KILL && signal != Signal::CONT {
            // A stopped process receives only SIGCONT and SIGKILL.
            let _ = kill_process_group(self.leader, Signal::CONT);
        }
    }

    /// Reaps all ended processes, including orphans of the container. Returns the exit code of
    /// the command if it has ended.
    pub(super) fn reap(&self) -> io::Result<Option<i32>> {
        let mut code = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.leader => {
                    let by_signal = status.terminating_signal().map(|signal| 128 + signal);
                    code = status.exit_status().or(by_signal).or(code);
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(code),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Reaps orphans while no command runs.
pub(super) fn reap_orphans() {
    while let Ok(Some(_)) | Err(rustix::io::Errno::INTR) = wait(WaitOptions::NOHANG) {}
}
