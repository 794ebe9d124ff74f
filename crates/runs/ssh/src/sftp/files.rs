//! Operations on files by path.

use std::{
    ffi::OsStr,
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use rustix::{
    fs::{AtFlags, CWD, RenameFlags, renameat_with, utimensat},
    io::Errno,
};

use super::{
    attributes::Attributes,
    listing,
    reply::{Named, Problem, Status},
};

/// The flags of an open.
const READ: u32 = 1;
const WRITE: u32 = 2;
const APPEND: u32 = 4;
const CREATE: u32 = 8;
const TRUNCATE: u32 = 16;
const EXCLUSIVE: u32 = 32;

/// Decodes the path in a request. An empty path is the folder of the process.
pub(super) fn path(bytes: &[u8]) -> PathBuf {
    match bytes {
        [] => PathBuf::from("."),
        bytes => PathBuf::from(OsStr::from_bytes(bytes)),
    }
}

/// Opens a file. Returns true if writes append to it.
pub(super) fn open(
    path: &Path,
    flags: u32,
    attributes: &Attributes,
) -> Result<(File, bool), Problem> {
    let has = |flag: u32| flags & flag != 0;
    let mut options = OpenOptions::new();
    options.read(has(READ) || !has(WRITE));
    if has(WRITE) {
        options.write(true).append(has(APPEND));
        options.truncate(has(TRUNCATE) && !has(APPEND));
        match has(EXCLUSIVE) {
            true => options.create_new(has(CREATE)),
            false => options.create(has(CREATE)),
        };
    }
    // The process's umask applies.
    options.mode(attributes.permissions().unwrap_or(0o666));
    let file = options.open(path)?;
    if has(WRITE) && has(APPEND) && has(TRUNCATE) {
        file.set_len(0)?;
    }
    Ok((file, has(WRITE) && has(APPEND)))
}

/// Changes attributes of a path, or of the link itself.
pub(super) fn set(path: &Path, attributes: &Attributes, follows: bool) -> Result<(), Problem> {
    let flags = match follows {
        true => AtFlags::empty(),
        false => AtFlags::SYMLINK_NOFOLLOW,
    };
    if let Some(size) = attributes.size {
        OpenOptions::new().write(true).open(path)?.set_len(size)?;
    }
    if let Some(mode) = attributes.permissions() {
        match follows {
            true => fs::set_permissions(path, fs::Permissions::from_mode(mode))?,
            false if fs::symlink_metadata(path)?.is_symlink() => {
                let text = "links have no permissions of their own";
                return Err(Problem::new(Status::Unsupported, text));
            }
            false => fs::set_permissions(path, fs::Permissions::from_mode(mode))?,
        }
    }
    if let Some(times) = attributes.timestamps() {
        utimensat(CWD, path, &times, flags)?;
    }
    if let Some((user, group)) = attributes.owner {
        match follows {
            true => std::os::unix::fs::chown(path, Some(user), Some(group))?,
            false => std::os::unix::fs::lchown(path, Some(user), Some(group))?,
        }
    }
    Ok(())
}

/// Like [`set`], but for an open file.
pub(super) fn set_open(file: &File, attributes: &Attributes) -> Result<(), Problem> {
    if let Some(size) = attributes.size {
        file.set_len(size)?;
    }
    if let Some(mode) = attributes.permissions() {
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    if let Some(times) = attributes.timestamps() {
        rustix::fs::futimens(file, &times)?;
    }
    if let Some((user, group)) = attributes.owner {
        std::os::unix::fs::fchown(file, Some(user), Some(group))?;
    }
    Ok(())
}

/// Renames a file, unless the new name exists, as the protocol requires.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), Problem> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS) => {
            // The file system does not support it.
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::Error::from(Errno::EXIST).into());
            }
            Ok(fs::rename(from, to)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// The absolute path without links. Its last part need not exist.
pub(super) fn real_path(path: &Path) -> Result<PathBuf, Problem> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(name) = path.file_name() else {
                return Err(error.into());
            };
            let parent = match path.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => Path::new("."),
            };
            Ok(fs::canonicalize(parent)?.join(name))
        }
        result => Ok(result?),
    }
}

/// An entry of a listing.
pub(super) fn named(name: &[u8], metadata: &Metadata) -> Named {
    let attributes = Attributes::of(metadata);
    Named {
        name: name.to_vec(),
        line: listing::line(name, &attributes, metadata.nlink(), Timestamp::now()),
        attributes,
    }
}

/// A path as the only entry of a reply.
pub(super) fn only_path(path: &Path) -> Named {
    let name = path.as_os_str().as_bytes().to_vec();
    Named {
        line: name.clone(),
        name,
        attributes: Attributes::default(),
    }
}
