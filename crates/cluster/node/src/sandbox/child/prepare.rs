//! Prepares the child before its file system view is set up: only system calls,
//! no allocation, no locks, no panics.

use std::{ffi::c_int, os::fd::RawFd, ptr};

use super::{
    program::Program,
    system::{CGROUPS, ERRORS, INIT, LISTEN, MAX_CGROUPS, check, write_file},
};

/// Enters the namespaces of an existing container, so that later children are in its PID namespace,
/// or copies the mounts of another process.
pub(super) fn enter(program: &Program) -> Result<(), c_int> {
    if let Some(process) = program.mounts_of {
        // SAFETY: a descriptor that the spawning thread holds, and flags.
        return check(unsafe { libc::setns(process, libc::CLONE_NEWNS) })
            .and_then(|()| check(unsafe { libc::unshare(libc::CLONE_NEWNS) }));
    }
    match program.enter {
        // SAFETY: a descriptor that the spawning thread holds, and flags.
        Some((container, namespaces)) if namespaces != 0 => {
            check(unsafe { libc::setns(container, namespaces) })
        }
        _ => Ok(()),
    }
}

/// Moves the streams to 0, 1, 2, the error pipe to 3, the init's file to 4, the socket for the
/// listener to 5, the files of cgroups to 6 and up, and closes all other descriptors.
///
/// # Errors
/// The system has no descriptors left. The sources are unchanged.
pub(super) fn move_descriptors(program: &Program) -> Result<(), c_int> {
    let mut high = [0; CGROUPS as usize + MAX_CGROUPS];
    let [input, output, error] = program.streams;
    // Without a listener, the descriptor is a copy of the init's file, and is closed.
    let listen = program.listen.as_ref();
    let listen = listen.map_or(program.init, |listener| listener.socket);
    let descriptors = [input, output, error, program.errors, program.init, listen];
    let descriptors = descriptors.iter().chain(&program.cgroups);
    let mut count = 0;
    for (slot, descriptor) in high.iter_mut().zip(descriptors) {
        // All descriptors are moved first, because a source may be at the number of another target.
        // SAFETY: duplicates an open descriptor, to a number above all targets.
        *slot = unsafe { libc::fcntl(*descriptor, libc::F_DUPFD, CGROUPS + MAX_CGROUPS as RawFd) };
        check(*slot)?;
        count += 1;
    }
    for (target, source) in (0..count).zip(high) {
        // SAFETY: duplicates onto the first descriptors of this process only.
        unsafe { libc::dup2(source, target) };
    }
    // The init closes the error pipe and the files of cgroups itself, because it uses them.
    // SAFETY: sets close-on-exec on the init's file.
    unsafe { libc::fcntl(INIT, libc::F_SETFD, libc::FD_CLOEXEC) };
    if program.listen.is_none() {
        // SAFETY: closes the copy of the init's file that was made above.
        unsafe { libc::close(LISTEN) };
    }
    // SAFETY: closes descriptors of this process, in which nothing owns them.
    if unsafe { libc::syscall(libc::SYS_close_range, count, u32::MAX, 0u32) } == -1 {
        for descriptor in count..65_536 {
            // SAFETY: as above, for kernels without close_range.
            unsafe { libc::close(descriptor) };
        }
    }
    Ok(())
}

/// Returns true if the agent died before this process set its parent-death signal. The error pipe
/// then has no reader.
pub(super) fn agent_is_gone() -> bool {
    let mut poll = libc::pollfd {
        fd: ERRORS,
        events: 0,
        revents: 0,
    };
    // SAFETY: one pollfd on the stack, no waiting.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
    ready > 0 && poll.revents & libc::POLLERR != 0
}

pub(super) fn default_signals() {
    // Zeros mean the default action in every layout of the kernel's struct.
    let default = [0u64; 8];
    for signal in 1..=64 {
        // SAFETY: a zeroed action longer than the kernel's struct. A raw system
        // call, because libc rejects its internal signals. The kernel rejects
        // KILL and STOP, which is harmless.
        unsafe {
            let none: *const u64 = ptr::null();
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                none,
                8usize,
            );
        }
    }
}

pub(super) fn write_user_map(program: &Program) -> Result<(), c_int> {
    let Some((users, groups)) = &program.user_map else {
        return Ok(());
    };
    write_file(c"/proc/self/uid_map", users.as_bytes())?;
    // Older kernels do not have this file.
    let _ = write_file(c"/proc/self/setgroups", b"deny");
    write_file(c"/proc/self/gid_map", groups.as_bytes())
}
