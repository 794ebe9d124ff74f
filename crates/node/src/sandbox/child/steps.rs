//! The steps that make a container's view of the files, in the child: only
//! system calls, no allocation, no locks, no panics.

use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr,
};

use super::{mounts, system::check};

/// One step of making the container's view of the files.
#[derive(Debug)]
pub(in crate::sandbox) enum Step {
    Private,
    Tmpfs {
        at: CString,
        options: CString,
    },
    Folder {
        at: CString,
    },
    File {
        at: CString,
    },
    Link {
        to: CString,
        at: CString,
    },
    Bind {
        from: CString,
        at: CString,
        optional: bool,
    },
    Make {
        walk: Walk,
        is_folder: bool,
        mode: u32,
    },
    Attach {
        from: Walk,
        at: Walk,
        read_only: bool,
        descriptors: CString,
    },
    ReadOnly {
        at: CString,
    },
    ReadOnlyTree {
        at: CString,
    },
    Writable {
        at: CString,
    },
    Mask {
        at: CString,
    },
    Protect {
        at: CString,
    },
    Processes {
        at: CString,
    },
    Pivot {
        root: CString,
        old: CString,
    },
    Enter {
        root: CString,
    },
}

/// A path that is walked without following symbolic links.
#[derive(Debug)]
pub(in crate::sandbox) struct Walk {
    pub(in crate::sandbox) from: CString,
    /// The names from there on.
    pub(in crate::sandbox) names: Vec<CString>,
}

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
            // SAFETY: as above; the new descriptor is closed at once.
            let file = unsafe { libc::open(at.as_ptr(), flags, 0o644) };
            check(file)?;
            // SAFETY: closes what was opened.
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
        } => mounts::make(walk, *is_folder, *mode),
        Step::Attach {
            from,
            at,
            read_only,
            descriptors,
        } => mounts::attach(from, at, *read_only, descriptors),
        Step::ReadOnlyTree { at } => mounts::set_read_only(at, true, true),
        Step::Writable { at } => {
            // Where it is no mount of its own it stays as its folder is.
            let _ = mounts::set_read_only(at, false, false);
            Ok(())
        }
        Step::Mask { at } => {
            mask(at);
            Ok(())
        }
        Step::Protect { at } => {
            // A part of /proc that this kernel does not have.
            if mount(at.as_ptr(), at, none, libc::MS_BIND | libc::MS_REC, none).is_ok() {
                remount_read_only(at)?;
            }
            Ok(())
        }
        Step::ReadOnly { at } => remount_read_only(at),
        Step::Processes { at } => {
            let proc = c"proc".as_ptr();
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            // Refused to some user namespaces; the machine's /proc is left then.
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
            // The old root ends up mounted over the new one, and is let go of.
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

/// Hides a file behind nothing, or a folder behind an empty one. What is not
/// there, or cannot be hidden in a user namespace, is left.
fn mask(at: &CStr) {
    let none = ptr::null();
    let nothing = c"/dev/null".as_ptr();
    if mount(nothing, at, none, libc::MS_BIND, none) == Err(libc::ENOTDIR) {
        let tmpfs = c"tmpfs".as_ptr();
        let _ = mount(tmpfs, at, tmpfs, libc::MS_RDONLY, none);
    }
}

/// No writing through the mount at this path.
pub(super) fn remount_read_only(at: &CStr) -> Result<(), c_int> {
    let none = ptr::null();
    mount(none, at, none, read_only_flags(at), none)
}

fn mount(
    from: *const c_char,
    at: &CStr,
    kind: *const c_char,
    flags: libc::c_ulong,
    options: *const c_char,
) -> Result<(), c_int> {
    // SAFETY: pointers are null or lead to C strings that outlive the call.
    check(unsafe { libc::mount(from, at.as_ptr(), kind, flags, options.cast()) })
}

/// Flags to remount read-only; those that a user namespace may not drop are kept.
fn read_only_flags(at: &CStr) -> libc::c_ulong {
    // SAFETY: statvfs fills the zeroed struct.
    let present = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(at.as_ptr(), &raw mut found) == 0 {
            found.f_flag
        } else {
            0
        }
    };
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
