//! OpenSSH's extensions of the protocol.

use std::{fs, os::unix::ffi::OsStrExt as _, path::PathBuf};

use rustix::fs::{StatVfs, StatVfsMountFlags, fstatvfs, statvfs};

use super::{
    MAX_DATA, MAX_MESSAGE,
    attributes::Attributes,
    files::{self, path},
    handles::{Handles, MAX_HANDLES},
    reply::{Content, Problem, Status},
};
use crate::wire::{Fields, Put as _};

/// The names and versions that the server announces.
pub(super) const EXTENSIONS: &[(&str, &str)] = &[
    ("posix-rename@openssh.com", "1"),
    ("statvfs@openssh.com", "2"),
    ("fstatvfs@openssh.com", "2"),
    ("hardlink@openssh.com", "1"),
    ("fsync@openssh.com", "1"),
    ("lsetstat@openssh.com", "1"),
    ("limits@openssh.com", "1"),
    ("expand-path@openssh.com", "1"),
    ("home-directory", "1"),
];

pub(super) fn answer(handles: &mut Handles, fields: &mut Fields<'_>) -> Result<Content, Problem> {
    match fields.string()? {
        b"posix-rename@openssh.com" => {
            fs::rename(path(fields.string()?), path(fields.string()?))?;
        }
        b"hardlink@openssh.com" => {
            fs::hard_link(path(fields.string()?), path(fields.string()?))?;
        }
        b"fsync@openssh.com" => handles.file(fields.string()?)?.0.sync_all()?,
        b"lsetstat@openssh.com" => {
            let path = path(fields.string()?);
            files::set(&path, &Attributes::read(fields)?, false)?;
        }
        b"statvfs@openssh.com" => return Ok(space(&statvfs(path(fields.string()?))?)),
        b"fstatvfs@openssh.com" => {
            let (file, _) = handles.file(fields.string()?)?;
            return Ok(space(&fstatvfs(file)?));
        }
        b"limits@openssh.com" => {
            let mut limits = Vec::new();
            for limit in [
                MAX_MESSAGE as u64,
                MAX_DATA.into(),
                MAX_DATA.into(),
                MAX_HANDLES as u64,
            ] {
                limits.put_long(limit);
            }
            return Ok(Content::Extended(limits));
        }
        b"expand-path@openssh.com" => {
            let path = expand(fields.string()?)?;
            return Ok(Content::Names(vec![files::only_path(&files::real_path(
                &path,
            )?)]));
        }
        b"home-directory" => return Ok(Content::Names(vec![files::only_path(&home()?)])),
        _ => {
            return Err(Problem::new(
                Status::Unsupported,
                "this extension is not supported",
            ));
        }
    }
    Ok(Content::Nothing)
}

/// A path with `~` or `~/` at its begin.
fn expand(bytes: &[u8]) -> Result<PathBuf, Problem> {
    Ok(match bytes {
        b"~" => home()?,
        [b'~', b'/', rest @ ..] => home()?.join(std::ffi::OsStr::from_bytes(rest)),
        [b'~', ..] => {
            let text = "only the home folder of the task's own user is known, ~/";
            return Err(Problem::new(Status::Failure, text));
        }
        bytes => path(bytes),
    })
}

fn home() -> Result<PathBuf, Problem> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    home.map(PathBuf::from)
        .ok_or_else(|| Problem::new(Status::Failure, "the task's user has no home folder"))
}

fn space(found: &StatVfs) -> Content {
    const READ_ONLY: u64 = 1;
    const NO_SETUID: u64 = 2;
    let flag = |flag, value| match found.f_flag.contains(flag) {
        true => value,
        false => 0,
    };
    let flags =
        flag(StatVfsMountFlags::RDONLY, READ_ONLY) | flag(StatVfsMountFlags::NOSUID, NO_SETUID);
    let mut bytes = Vec::new();
    for value in [
        found.f_bsize,
        found.f_frsize,
        found.f_blocks,
        found.f_bfree,
        found.f_bavail,
        found.f_files,
        found.f_ffree,
        found.f_favail,
        found.f_fsid,
        flags,
        found.f_namemax,
    ] {
        bytes.put_long(value);
    }
    Content::Extended(bytes)
}
