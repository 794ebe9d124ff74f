//! The system calls that the child uses. They are safe after a fork in a
//! multithreaded process: no allocation, no locks, no panics.

use std::{
    ffi::{c_int, c_void},
    io,
    os::fd::RawFd,
    ptr,
};

use super::stage::Stage;

/// The descriptor for error reports.
pub(super) const ERRORS: RawFd = 3;
/// The descriptor of the init's executable.
pub(super) const INIT: RawFd = 4;
/// The descriptor of the socket to the agent, over which the child sends a listener.
pub(super) const LISTEN: RawFd = 5;
/// The first descriptor of the files through which the init joins cgroups; `init/system.rs` has
/// the same number.
pub(super) const CGROUPS: RawFd = 6;
/// The maximum number of these files.
pub(super) const MAX_CGROUPS: usize = 8;

pub(super) fn errno() -> c_int {
    // SAFETY: reads this thread's errno, which stays valid after clone.
    unsafe { *libc::__errno_location() }
}

/// A `fork` through the raw system call, so that `pthread_atfork` handlers do
/// not run and namespaces can be created at the same time. Returns the pid, 0
/// in the child, or -1.
///
/// # Safety
/// The child may only make system calls until it executes a program or exits.
pub(super) unsafe fn fork_into(namespaces: c_int) -> libc::pid_t {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without CLONE_VM and with a null stack, this is a fork: the child has a copy of the
    // memory and continues on the same stack.
    unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) as libc::pid_t }
}

/// The stack of a child that uses this process's memory. The child's functions need far less. If
/// they needed more, the guard below the stack would end the child before it overwrites other
/// memory.
pub(in crate::sandbox) struct Stack(*mut c_void);

const STACK_BYTES: usize = 256 << 10;
/// A multiple of the page size of every machine.
const GUARD_BYTES: usize = 64 << 10;

// SAFETY: the memory is not bound to a thread, and only its owner uses it.
unsafe impl Send for Stack {}

impl Stack {
    pub(in crate::sandbox) fn new() -> io::Result<Self> {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
        );
        let size = GUARD_BYTES + STACK_BYTES;
        // SAFETY: maps new memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self(start);
        // SAFETY: the lower part of the memory that was mapped above, which nothing uses.
        match unsafe { libc::mprotect(stack.0, GUARD_BYTES, libc::PROT_NONE) } {
            0 => Ok(stack),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the upper end of the stack, which is aligned as the ABI requires. Stacks grow
    /// downwards.
    fn top(&mut self) -> *mut c_void {
        self.0.wrapping_byte_add(GUARD_BYTES + STACK_BYTES)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the memory that was mapped for this value. Children that used it have executed
        // a program or ended.
        unsafe { libc::munmap(self.0, GUARD_BYTES + STACK_BYTES) };
    }
}

/// Runs `child` in a process with new namespaces that uses this process's memory, and waits until
/// it executes a program or exits. A fork would copy the page tables, and each page that this
/// process writes next, which takes longer than the start of a program in a process with a large
/// cluster. Returns the pid, or -1.
///
/// # Safety
/// All signals are blocked in this thread. `child` only makes system calls, and `argument` is the
/// value that it expects.
pub(super) unsafe fn start_with_memory(
    namespaces: c_int,
    stack: &mut Stack,
    child: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> libc::pid_t {
    let flags = namespaces | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child has its own stack. It shares this thread's errno, which this thread does
    // not use in the meantime, because it waits.
    unsafe { libc::clone(child, stack.top(), flags, argument) }
}

pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: ends this process without running exit handlers of the host
    // process.
    unsafe { libc::_exit(code) }
}

/// Converts -1 to errno.
pub(super) fn check(result: c_int) -> Result<(), c_int> {
    if result == -1 { Err(errno()) } else { Ok(()) }
}

pub(super) fn fail(stage: Stage, index: usize, error: c_int) -> ! {
    fail_on(ERRORS, stage, index, error)
}

/// Reports the failed stage over this descriptor, and ends.
pub(super) fn fail_on(errors: RawFd, stage: Stage, index: usize, error: c_int) -> ! {
    let mut record = [0u8; 12];
    record[..4].copy_from_slice(&(stage as u32).to_ne_bytes());
    record[4..8].copy_from_slice(&(index as u32).to_ne_bytes());
    record[8..].copy_from_slice(&error.to_ne_bytes());
    // SAFETY: writes 12 bytes of a local array, which is atomic because it is
    // less than PIPE_BUF.
    unsafe { libc::write(errors, record.as_ptr().cast(), record.len()) };
    exit(128)
}

pub(super) fn write_file(path: &std::ffi::CStr, bytes: &[u8]) -> Result<(), c_int> {
    // SAFETY: opens, writes and closes by system calls, from memory that
    // outlives them.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(file)?;
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let result = if written == -1 { Err(errno()) } else { Ok(()) };
        libc::close(file);
        result
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_guard_is_below_the_stack() {
        let mut stack = Stack::new().unwrap();
        let end = stack.top().addr();
        let (begin, guard) = (end - STACK_BYTES, end - STACK_BYTES - GUARD_BYTES);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let access = |address: usize| {
            let number = |text: &str| usize::from_str_radix(text, 16).ok();
            maps.lines().find_map(|line| {
                let (range, rest) = line.split_once(' ')?;
                let (from, to) = range.split_once('-')?;
                let range = number(from)?..number(to)?;
                range.contains(&address).then(|| rest[..3].to_owned())
            })
        };
        for address in [begin, end - 1] {
            assert_eq!(access(address).as_deref(), Some("rw-"));
        }
        for address in [guard, begin - 1] {
            assert_eq!(access(address).as_deref(), Some("---"));
        }
        assert_eq!(end % 16, 0);
    }
}
