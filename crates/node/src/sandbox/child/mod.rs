//! What happens between `clone` and the start of the container's init.
//!
//! The agent lives in a process with many threads, so the child may only make
//! system calls: no allocation, no locks, no panics. Everything it needs is
//! computed before, in [`Program`]. The child still has the agent's memory, so
//! it must not be seen by a container: it is alone in the namespaces that it
//! makes, or outside of the PID namespace that it enters, until it executes the
//! init (`init/`), which has nothing of the agent's.
#![allow(unsafe_code)]

mod descriptor_mounts;
mod path_mounts;
mod prepare;
mod privileges;
mod program;
mod run_step;
mod stage;
mod step;
mod strings;
mod system;

use std::{ffi::c_int, io, os::fd::OwnedFd, ptr};

use tokio::io::{Interest, unix::AsyncFd};

use prepare::{agent_is_gone, default_signals, enter, move_descriptors, write_user_map};
pub(super) use program::{Limits, Program};
use run_step::run_step;
pub(super) use stage::Stage;
pub(super) use step::{Step, Walk};
pub(super) use strings::{Strings, c_string};
use system::{INIT, check, errno, exit, fail, fork_into};

/// The signal that asks a container's init to kill all that the command started
/// and end; used where there is no PID namespace to do it.
pub(super) const KILL_ALL: c_int = libc::SIGIO;

/// Starts the container's init. All signals must be blocked in this thread, so
/// that no handler of the host process runs in the child.
pub(super) fn start(program: &Program) -> Result<libc::pid_t, c_int> {
    // SAFETY: the child runs `become_init`, which only makes system calls.
    let pid = unsafe { fork_into(program.namespaces) };
    match pid {
        0 => become_init(program),
        -1 => Err(errno()),
        pid => Ok(pid),
    }
}

/// Runs `steps` in a child in new namespaces and gives 0, or the errno of the
/// first step that failed: what the kernel allows.
pub(super) fn try_out(program: &Program) -> c_int {
    // SAFETY: the child only makes system calls and exits.
    let pid = unsafe { fork_into(program.namespaces) };
    match pid {
        -1 => errno(),
        0 => {
            let result =
                write_user_map(program).and_then(|()| program.steps.iter().try_for_each(run_step));
            exit(result.err().unwrap_or(0).clamp(0, 255))
        }
        pid => {
            let mut status = 0;
            loop {
                // SAFETY: waits for the child made above.
                let waited = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
                if waited == pid {
                    break;
                }
                if errno() != libc::EINTR {
                    return libc::ECHILD;
                }
            }
            if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                libc::EPERM
            }
        }
    }
}

/// Lets the runtime wait for a descriptor.
pub(super) fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is a valid descriptor, never replaced, and the AsyncFd
    // closes it only after it has let go of it.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
    registered.map_err(io::Error::from)
}

/// Blocks all signals in this thread.
pub(super) fn block_signals() {
    // SAFETY: a sigset_t is plain memory that sigfillset fills.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut());
    }
}

/// The first process of the container: makes the view, gives up privileges, and
/// executes the init, which starts the command.
fn become_init(program: &Program) -> ! {
    // Before anything else: a change of user would forget the bond below.
    let entered = enter(program);
    let on_parent_death = if program.has_own_processes() {
        libc::SIGKILL
    } else {
        KILL_ALL
    };
    // SAFETY: prctl with integers only.
    let bound = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, on_parent_death, 0, 0, 0) };
    if let Err(error) = move_descriptors(program) {
        exit(if error == 0 { 1 } else { 128 });
    }
    if let Err(error) = entered {
        fail(Stage::Enter, 0, error);
    }
    if bound == -1 {
        fail(Stage::Session, 0, errno());
    }
    if agent_is_gone() {
        exit(1);
    }
    // SAFETY: plain system calls.
    unsafe {
        libc::setsid();
        libc::umask(0o022);
        if program.tidies() {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        }
    }
    default_signals();
    if let Err(error) = write_user_map(program) {
        fail(Stage::UserMap, 0, error);
    }
    for (index, step) in program.steps.iter().enumerate() {
        if let Err(error) = run_step(step) {
            fail(Stage::View, index, error);
        }
    }
    if let Some(name) = &program.hostname {
        let bytes = name.as_bytes();
        // SAFETY: pointer and length of a string that lives on.
        if let Err(error) = check(unsafe { libc::sethostname(bytes.as_ptr().cast(), bytes.len()) })
        {
            fail(Stage::Hostname, 0, error);
        }
    }
    if let Err((stage, error)) = privileges::give_up(&program.limits) {
        fail(stage, 0, error);
    }
    // SAFETY: null-terminated arrays of C strings that live on. The descriptor
    // is closed by the execution.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            INIT,
            c"".as_ptr(),
            program.arguments.pointers.as_ptr(),
            program.environment.pointers.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    fail(Stage::Init, 0, errno())
}
