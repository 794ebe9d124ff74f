//! The code between `clone` and the start of the container's init.
//!
//! The agent is a multithreaded process, so the child may only make system calls: no allocation, no
//! locks, no panics. Everything it needs is computed before, in [`Program`]. The child uses the
//! agent's memory, so containers must not see it: until the child executes the init (`init/`),
//! which contains nothing of the agent, it is alone in its new namespaces, or outside the PID
//! namespace that it enters. The thread that starts the child waits until then.
//!
//! The init joins the container's cgroup instead of the child. When the kernel kills all processes
//! of a cgroup for lack of memory (`memory.oom.group`), it also kills every process that shares
//! memory with one of them, which would be the agent.
#![allow(unsafe_code)]

mod descriptor_mounts;
mod listen;
mod path_mounts;
mod prepare;
mod privileges;
mod program;
mod run_step;
mod stage;
mod step;
mod strings;
mod system;

use std::{
    ffi::{c_int, c_void},
    io,
    os::fd::OwnedFd,
    ptr,
};

use tokio::io::{Interest, unix::AsyncFd};

use prepare::{agent_is_gone, default_signals, enter, move_descriptors, write_user_map};
pub(super) use program::{Limits, Listener, Program};
use run_step::run_step;
pub(super) use stage::Stage;
pub(super) use step::{Step, Walk};
pub(super) use strings::{Strings, c_string};
pub(super) use system::Stack;
use system::{INIT, LISTEN, check, errno, exit, fail, fail_on, fork_into, start_with_memory};

/// The signal that makes a container's init kill all processes of the command and exit. Used
/// without a PID namespace, which would do this.
pub(super) const KILL_ALL: c_int = libc::SIGIO;

/// Starts the container's init, and waits until it is executed or has failed to start. All signals
/// must be blocked in this thread, so that no signal handler of the host process runs in the child.
pub(super) fn start(program: &Program, stack: &mut Stack) -> Result<libc::pid_t, c_int> {
    extern "C" fn child(program: *mut c_void) -> c_int {
        // SAFETY: the address of the program below, which outlives the child's use of this memory.
        let program: &Program = unsafe { &*program.cast_const().cast() };
        become_init(program)
    }
    let argument = ptr::from_ref(program).cast_mut().cast();
    // SAFETY: the child runs `become_init`, which only makes system calls.
    let pid = unsafe { start_with_memory(program.namespaces, stack, child, argument) };
    if pid == -1 { Err(errno()) } else { Ok(pid) }
}

/// Runs `steps` in a child in new namespaces to test what the kernel allows. Returns 0, or the
/// errno of the first step that failed.
pub(super) fn try_steps(program: &Program) -> c_int {
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
                // SAFETY: waits for the child created above.
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

/// Registers a descriptor with the runtime.
pub(super) fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is a valid descriptor that is never replaced, and the
    // AsyncFd deregisters it before closing it.
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

/// Runs as the first process of the container: sets up the file system view, gives up privileges,
/// and executes the init, which starts the command.
fn become_init(program: &Program) -> ! {
    // Done before the other steps, because a change of user resets the parent-death signal set
    // below.
    let entered = enter(program);
    let on_parent_death = if program.has_own_processes() {
        libc::SIGKILL
    } else {
        KILL_ALL
    };
    // SAFETY: prctl with integers only.
    let bound = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, on_parent_death, 0, 0, 0) };
    if let Err(error) = move_descriptors(program) {
        fail_on(program.errors, Stage::Descriptors, 0, error);
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
        if program.kills_leftovers() {
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
        // SAFETY: pointer and length of a string that outlives the call.
        if let Err(error) = check(unsafe { libc::sethostname(bytes.as_ptr().cast(), bytes.len()) })
        {
            fail(Stage::Hostname, 0, error);
        }
    }
    if let Some(listener) = &program.listen
        && let Err(error) = listen::listen(LISTEN, &listener.filter)
    {
        fail(Stage::SystemCalls, 0, error);
    }
    if let Err((stage, error)) = privileges::give_up(&program.limits) {
        fail(stage, 0, error);
    }
    // SAFETY: null-terminated arrays of C strings that outlive the call. The
    // descriptor is closed on exec.
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
