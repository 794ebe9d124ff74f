//! Mounts by paths, in the child: only system calls, no allocation, no locks,
//! no panics.

use std::{
    ffi::{CStr, c_char, c_int},
    ptr,
};

use super::system::check;

/// Makes the mount at this path read-only.
pub(super) fn remount_read_only(at: &CStr) -> Result<(), c_int> {
    let none = ptr::null();
    mount(none, at, none, read_only_flags(at), none)
}

/// The system call `mount`.
pub(super) fn mount(
    from: *const c_char,
    at: &CStr,
    kind: *const c_char,
    flags: libc::c_ulong,
    options: *const c_char,
) -> Result<(), c_int> {
    // SAFETY: pointers are null or point to C strings that outlive the call.
    check(unsafe { libc::mount(from, at.as_ptr(), kind, flags, options.cast()) })
}

/// Returns the flags for a read-only remount, including those that a user
/// namespace may not remove.
fn read_only_flags(at: &CStr) -> libc::c_ulong {
    // Makes the system call directly, unlike the function of C libraries.
    let present = rustix::fs::statvfs(at).map_or(0, |found| found.f_flag.bits());
    let pairs = [
        (libc::ST_NOSUID, libc::MS_NOSUID),
        (libc::ST_NODEV, libc::MS_NODEV),
        (libc::ST_NOEXEC, libc::MS_NOEXEC),
        (libc::ST_NOATIME, libc::MS_NOATIME),
        (libc::ST_NODIRATIME, libc::MS_NODIRATIME),
        (libc::ST_RELATIME, libc::MS_RELATIME),
    ];
    let mut flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY;
    for (seen, kept) in pairs {
        if present & seen != 0 {
            flags |= kept;
        }
    }
    flags
}
