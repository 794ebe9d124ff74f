//! The child that becomes the container's command: only system calls, no
//! allocation, no locks, no panics.

use std::{ffi::c_int, ptr};

use super::{
    program::{Program, Stage, User},
    system::{check, errno, fail},
};

/// Becomes the container's command.
pub(super) fn command(program: &Program) -> ! {
    // SAFETY: plain system calls. KILL, so that it dies with its init.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        let is_inside = program.namespaces & libc::CLONE_NEWPID != 0 || program.enter.is_some();
        if is_inside || program.terminal {
            libc::setsid();
        } else {
            libc::setpgid(0, 0);
        }
    }
    // SAFETY: an ioctl without memory; the session has no terminal yet.
    if program.terminal && unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) } == -1 {
        fail(Stage::Terminal, 0, errno());
    }
    if let Some(user) = &program.user
        && let Err(error) = become_user(user)
    {
        fail(Stage::User, 0, error);
    }
    // SAFETY: a C string that outlives the call.
    if let Err(error) = check(unsafe { libc::chdir(program.working_folder.as_ptr()) }) {
        fail(Stage::WorkingFolder, 0, error);
    }
    // SAFETY: an emptied signal set; no handler is left to run.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
    let (arguments, environment) = (&program.arguments.pointers, &program.environment.pointers);
    let mut worst = libc::ENOENT;
    for candidate in &program.candidates {
        // SAFETY: null-terminated arrays of C strings that live on.
        unsafe { libc::execve(candidate.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        match errno() {
            libc::ENOENT | libc::ENOTDIR => {}
            // A later folder may have one that may be run.
            libc::EACCES => worst = libc::EACCES,
            error => fail(Stage::Execute, 0, error),
        }
    }
    fail(Stage::Execute, 0, worst)
}

/// By raw system calls: libc's functions would signal threads that this
/// process does not have.
fn become_user(user: &User) -> Result<(), c_int> {
    // SAFETY: integers and a slice that lives on.
    unsafe {
        let (count, list) = (user.groups.len(), user.groups.as_ptr());
        check(libc::syscall(libc::SYS_setgroups, count, list) as c_int)?;
        if let Some(gid) = user.gid {
            check(libc::syscall(libc::SYS_setgid, gid) as c_int)?;
        }
        if let Some(uid) = user.uid {
            check(libc::syscall(libc::SYS_setuid, uid) as c_int)?;
        }
        // Dropped by the change of user.
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))
    }
}
