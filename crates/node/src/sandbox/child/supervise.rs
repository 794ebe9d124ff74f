//! The container's init once the command runs: only system calls, no
//! allocation, no locks, no panics.

use std::ptr;

use super::{KILL_GROUP, system::exit};

/// Reaps, passes signals on, ends with the command's code. `command` 0 means
/// that there is none: TERM or INT end it. With `tidies` what the command
/// leaves of its group ends with it.
pub(super) fn supervise(command: libc::pid_t, own_processes: bool, tidies: bool) -> ! {
    // SAFETY: a sigset_t is plain memory that sigfillset fills.
    let all = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        all
    };
    loop {
        // SAFETY: waits for a signal; all are blocked, so none is lost, and
        // blocked signals reach a PID namespace's init although it handles none.
        let signal = unsafe { libc::sigwaitinfo(&raw const all, ptr::null_mut()) };
        match signal {
            libc::SIGCHLD => reap(command, tidies),
            KILL_GROUP if !own_processes => {
                if command > 0 {
                    kill_group(command);
                }
                exit(137)
            }
            libc::SIGTERM
            | libc::SIGINT
            | libc::SIGHUP
            | libc::SIGQUIT
            | libc::SIGUSR1
            | libc::SIGUSR2
            | libc::SIGWINCH => {
                if command > 0 {
                    // SAFETY: the command is a child that was not yet waited for.
                    unsafe { libc::kill(command, signal) };
                } else if matches!(signal, libc::SIGTERM | libc::SIGINT) {
                    exit(0)
                }
            }
            _ => {}
        }
    }
}

fn reap(command: libc::pid_t, tidies: bool) {
    loop {
        let mut status = 0;
        // SAFETY: waits for any child without blocking.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
        if pid <= 0 {
            return;
        }
        if pid == command {
            if tidies {
                kill_group(command);
            }
            exit(if libc::WIFSIGNALED(status) {
                128 + libc::WTERMSIG(status)
            } else {
                libc::WEXITSTATUS(status)
            });
        }
    }
}

/// Kills the command's process group and waits until those of it that are
/// children here are gone: who sees the init's end finds none of them.
fn kill_group(command: libc::pid_t) {
    // SAFETY: the command's own process group; waits for children only.
    unsafe {
        libc::kill(-command, libc::SIGKILL);
        while libc::waitpid(-command, ptr::null_mut(), libc::__WALL) > 0 {}
    }
}
