//! Runs the steps that set up a container's file system view, in the child:
//! only system calls, no allocation, no locks, no panics.

use std::{
    ffi::{CStr, c_int},
    ptr,
};

use super::{
    descriptor_mounts,
    path_mounts::{mount, remount_read_only},
    step::Step,
    system::check,
};

/// Runs one step.
pub(super) fn run_step(step: &Step) -> Result<(), c_int> {
    let none = ptr::null();
    match step {
        Step::Private => {
            // SAFETY: constant strings.
            check(unsafe {
                libc::mount(
                    none,
                    c"/".as_ptr(),
                    none,
                    libc::MS_REC | libc::MS_PRIVATE,
                    ptr::null(),
                )
            })
        }
        Step::Tmpfs { at, options } => {
            let tmpfs = c"tmpfs".as_ptr();
            mount(
                tmpfs,
                at,
                tmpfs,
                libc::MS_NODEV | libc::MS_NOSUID,
                options.as_ptr(),
            )
        }
        Step::Folder { at } => {
            // SAFETY: a C string that outlives the call.
            match check(unsafe { libc::mkdir(at.as_ptr(), 0o755) }) {
                Err(libc::EEXIST) => Ok(()),
                result => result,
            }
        }
        Step::File { at } => {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC;
            // SAFETY: as above. The new descriptor is closed immediately.
            let file = unsafe { libc::open(at.as_ptr(), flags, 0o644) };
            check(file)?;
            // SAFETY: closes the descriptor opened above.
            unsafe { libc::close(file) };
            Ok(())
        }
        Step::Link { to, at } => {
            // SAFETY: C strings that outlive the call.
            check(unsafe { libc::symlink(to.as_ptr(), at.as_ptr()) })
        }
        Step::Bind { from, at, optional } => {
            let flags = libc::MS_BIND | libc::MS_REC;
            match mount(from.as_ptr(), at, none, flags, none) {
                Err(_) if *optional => Ok(()),
                result => result,
            }
        }
        Step::Make {
            walk,
            is_folder,
            mode,
        } => descriptor_mounts::make(walk, *is_folder, *mode),
        Step::Attach {
            from,
            at,
            read_only,
            descriptors,
        } => descriptor_mounts::attach(from, at, *read_only, descriptors),
        Step::ReadOnlyTree { at } => descriptor_mounts::set_read_only(at, true, true),
        Step::Writable { at } => {
            // If it is not a separate mount, it keeps the state of its parent.
            let _ = descriptor_mounts::set_read_only(at, false, false);
            Ok(())
        }
        Step::Detach { at } => {
            // A user namespace cannot detach mounts of the machine, but they are covered.
            // SAFETY: a C string that outlives the call.
            unsafe { libc::umount2(at.as_ptr(), libc::MNT_DETACH) };
            Ok(())
        }
        Step::Mask { at } => {
            mask(at);
            Ok(())
        }
        Step::Protect { at } => {
            // This kernel may lack that part of /proc.
            if mount(at.as_ptr(), at, none, libc::MS_BIND | libc::MS_REC, none).is_ok() {
                remount_read_only(at)?;
            }
            Ok(())
        }
        Step::ReadOnly { at } => remount_read_only(at),
        Step::Processes { at } => {
            let proc = c"proc".as_ptr();
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            // Some user namespaces do not allow this; the machine's /proc
            // remains in that case.
            let _ = mount(proc, at, proc, flags, none);
            Ok(())
        }
        Step::Pivot { root, old } => {
            // SAFETY: C strings that outlive the calls.
            unsafe {
                let result = libc::syscall(libc::SYS_pivot_root, root.as_ptr(), old.as_ptr());
                check(result as c_int)?;
                check(libc::chdir(c"/".as_ptr()))
            }
        }
        Step::Enter { root } => {
            // The old root is mounted over the new one and then detached.
            // SAFETY: C strings that outlive the calls.
            unsafe {
                let here = c".".as_ptr();
                check(libc::chdir(root.as_ptr()))?;
                check(libc::syscall(libc::SYS_pivot_root, here, here) as c_int)?;
                check(libc::umount2(here, libc::MNT_DETACH))?;
                check(libc::chdir(c"/".as_ptr()))
            }
        }
    }
}

/// Hides a file behind `/dev/null`, or a directory behind an empty one. Skips files that do not
/// exist or cannot be hidden in a user namespace.
fn mask(at: &CStr) {
    let none = ptr::null();
    let nothing = c"/dev/null".as_ptr();
    if mount(nothing, at, none, libc::MS_BIND, none) == Err(libc::ENOTDIR) {
        let tmpfs = c"tmpfs".as_ptr();
        let _ = mount(tmpfs, at, tmpfs, libc::MS_RDONLY, none);
    }
}
