//! The calls that everything in the child is made of. They are safe after a
//! fork in a process with many threads: no allocation, no locks, no panics.

use std::{ffi::c_int, os::fd::RawFd};

use super::stage::Stage;

/// Where to report what failed.
pub(super) const ERRORS: RawFd = 3;
/// The file of the init.
pub(super) const INIT: RawFd = 4;

pub(super) fn errno() -> c_int {
    // SAFETY: reads this thread's errno, which stays valid after clone.
    unsafe { *libc::__errno_location() }
}

/// A `fork` by the raw system call, so that no handler of `pthread_atfork` runs
/// and namespaces can be made with it. Returns the pid, 0 in the child, or -1.
///
/// # Safety
/// The child may only make system calls until it executes a program or exits.
pub(super) unsafe fn fork_into(namespaces: c_int) -> libc::pid_t {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without CLONE_VM and with a null stack this is fork: the child
    // has its own copy of the memory and goes on on the same stack.
    unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) as libc::pid_t }
}

pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: ends this process without running anything of the host's.
    unsafe { libc::_exit(code) }
}

/// Turns -1 into errno.
pub(super) fn check(result: c_int) -> Result<(), c_int> {
    if result == -1 { Err(errno()) } else { Ok(()) }
}

pub(super) fn fail(stage: Stage, index: usize, error: c_int) -> ! {
    let mut record = [0u8; 12];
    record[..4].copy_from_slice(&(stage as u32).to_ne_bytes());
    record[4..8].copy_from_slice(&(index as u32).to_ne_bytes());
    record[8..].copy_from_slice(&error.to_ne_bytes());
    // SAFETY: writes 12 bytes of a local array; fewer than PIPE_BUF, so whole.
    unsafe { libc::write(ERRORS, record.as_ptr().cast(), record.len()) };
    exit(128)
}

pub(super) fn write_file(path: &std::ffi::CStr, bytes: &[u8]) -> Result<(), c_int> {
    // SAFETY: opens, writes and closes by system calls, from memory that lives on.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(file)?;
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let result = if written == -1 { Err(errno()) } else { Ok(()) };
        libc::close(file);
        result
    }
}
