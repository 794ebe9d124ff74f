//! Mounts by file descriptors, in the child: only system calls, no allocation,
//! no locks, no panics. (rustix makes the system calls directly; paths are C
//! strings here.)
//!
//! A path below a volume is opened component by component, and symbolic links
//! are rejected: a container that changes the volume concurrently can make the
//! start fail, but cannot redirect it.

use std::{
    ffi::{CStr, CString, c_int},
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags},
    io::Errno,
    mount::{MoveMountFlags, OpenTreeFlags},
};

use super::{path_mounts::remount_read_only, step::Walk, system::check};

const MOUNT_ATTR_RDONLY: u64 = 1;

/// `struct mount_attr`.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Creates the missing parts of a path: directories, and the last component as
/// a directory or file.
pub(super) fn make(walk: &Walk, is_folder: bool, mode: u32) -> Result<(), c_int> {
    let mut folder = open(&walk.from)?;
    // Create with the exact mode: a later chmod could affect another file.
    let umask = rustix::process::umask(Mode::empty());
    let mode = Mode::from_raw_mode(mode);
    let mut result = Ok(());
    for (index, name) in walk.names.iter().enumerate() {
        let is_last = index + 1 == walk.names.len();
        let opened = step(&folder, name).or_else(|error| match error {
            Errno::NOENT if is_folder || !is_last => {
                ok_if_exists(rustix::fs::mkdirat(&folder, name, mode))?;
                step(&folder, name)
            }
            Errno::NOENT => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&folder, name, flags, mode & !Mode::from(0o111));
                ok_if_exists(file.map(drop))?;
                step(&folder, name)
            }
            error => Err(error),
        });
        match opened {
            Ok(next) => folder = next,
            Err(error) => {
                result = Err(error.raw_os_error());
                break;
            }
        }
    }
    rustix::process::umask(umask);
    result
}

/// Accepts that another process created the entry concurrently.
fn ok_if_exists(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::EXIST) => Ok(()),
        result => result,
    }
}

/// Mounts the end of `from` also at the end of `at`.
pub(super) fn attach(
    from: &Walk,
    at: &Walk,
    read_only: bool,
    descriptors: &CStr,
) -> Result<(), c_int> {
    let number = |error: Errno| error.raw_os_error();
    let from = walk(from).map_err(number)?;
    let at = walk(at).map_err(number)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = rustix::mount::open_tree(&from, c"", flags).map_err(number)?;
    let mut is_read_only = !read_only;
    if read_only {
        match set_attributes(
            tree.as_raw_fd(),
            c"",
            libc::AT_EMPTY_PATH,
            MOUNT_ATTR_RDONLY,
            0,
        ) {
            Err(libc::ENOSYS) => {}
            result => {
                result?;
                is_read_only = true;
            }
        }
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(&tree, c"", &at, c"", flags).map_err(number)?;
    if !is_read_only {
        remount(&tree, descriptors)?;
    }
    Ok(())
}

/// Before Linux 5.12, remounting read-only requires a path.
fn remount(tree: &OwnedFd, descriptors: &CStr) -> Result<(), c_int> {
    let mut path = [0u8; 64];
    let mut length = 0;
    let mut push = |byte: u8| {
        let place = path.get_mut(length).ok_or(libc::ENAMETOOLONG)?;
        *place = byte;
        length += 1;
        Ok::<_, c_int>(())
    };
    for byte in descriptors.to_bytes() {
        push(*byte)?;
    }
    push(b'/')?;
    let number = tree.as_raw_fd();
    let mut divisor = 1_000_000_000;
    let mut has_begun = false;
    while divisor > 0 {
        let digit = number / divisor % 10;
        has_begun |= digit != 0 || divisor == 1;
        if has_begun {
            push(b'0' + u8::try_from(digit).unwrap_or(0))?;
        }
        divisor /= 10;
    }
    push(0)?;
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| libc::EINVAL)?;
    remount_read_only(path)
}

/// Sets whether a mount, or with `all` every mount below it, is read-only.
pub(super) fn set_read_only(at: &CString, read_only: bool, all: bool) -> Result<(), c_int> {
    let flags = if all { libc::AT_RECURSIVE } else { 0 };
    let (set, clear) = if read_only {
        (MOUNT_ATTR_RDONLY, 0)
    } else {
        (0, MOUNT_ATTR_RDONLY)
    };
    set_attributes(libc::AT_FDCWD, at, flags, set, clear)
}

fn set_attributes(
    folder: c_int,
    path: &CStr,
    flags: c_int,
    set: u64,
    clear: u64,
) -> Result<(), c_int> {
    let attributes = Attributes {
        set,
        clear,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: a C string and a struct of the given size, which both outlive the
    // call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<Attributes>(),
        ) as c_int
    })
}

/// Opens the end of a walk.
fn walk(walk: &Walk) -> Result<OwnedFd, Errno> {
    let mut place = open(&walk.from).map_err(Errno::from_raw_os_error)?;
    for name in &walk.names {
        place = step(&place, name)?;
    }
    Ok(place)
}

fn open(path: &CStr) -> Result<OwnedFd, c_int> {
    let opened = rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    opened.map_err(Errno::raw_os_error)
}

/// Opens the next component. Returns `LOOP` for a symbolic link.
fn step(folder: &impl AsFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let mode = rustix::fs::fstat(&place)?.st_mode;
    if FileType::from_raw_mode(mode) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    Ok(place)
}
