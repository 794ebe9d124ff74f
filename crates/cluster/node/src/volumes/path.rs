//! Paths of volumes on the machine, and paths below a volume.

use std::{
    fs, io,
    os::unix::fs::{
        DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown,
    },
    path::{Component, Path, PathBuf},
};

use rustix::fs::{FileType, Mode, OFlags};

use super::{Prepared, VolumeError, publish};
use crate::sandbox::view::{Below, FileKind, Source};

/// Returns a path that stays below its volume.
pub(super) fn relative(volume: &str, path: &str) -> Result<PathBuf, VolumeError> {
    let clean: Option<PathBuf> = Path::new(path)
        .components()
        .map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    match clean {
        Some(clean) if !clean.as_os_str().is_empty() && !path.starts_with("..") => Ok(clean),
        _ => Err(VolumeError::BadPath {
            volume: volume.to_owned(),
            path: path.to_owned(),
        }),
    }
}

/// Returns the part of a volume that a `subPath` names. Symbolic links are not
/// followed, because a container could have created them.
pub(crate) fn sub_path(
    volume: &str,
    prepared: &Prepared,
    sub_path: &str,
) -> Result<Source, VolumeError> {
    if sub_path.is_empty() {
        return Ok(Source::whole(&prepared.path));
    }
    let system = |source| VolumeError::System {
        volume: volume.to_owned(),
        source,
    };
    let below = relative(volume, sub_path)?;
    let mut path = prepared.path.clone();
    if prepared.is_published {
        // Files that the agent created are reached through the agent's links.
        path = path.canonicalize().map_err(system)?;
        path = publish::current_dir(&path);
    }
    let kind = match find(&path, &below) {
        Ok(kind) => kind,
        // The missing path is created as a directory when the container starts.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !prepared.read_only => {
            FileKind::Folder
        }
        Err(error) => {
            let reason = match error.raw_os_error() {
                Some(libc::ELOOP) => "it has a symbolic link, which is not followed, since a \
                                      container may have made it; give the path without links"
                    .to_owned(),
                _ => error.to_string(),
            };
            return Err(VolumeError::SubPath {
                volume: volume.to_owned(),
                path: sub_path.to_owned(),
                reason,
            });
        }
    };
    let mode = fs::metadata(&path).map_err(system)?.mode() & 0o777;
    Ok(Source {
        path,
        below: Some(Below {
            path: below,
            kind,
            mode: (!prepared.read_only).then_some(mode),
        }),
    })
}

/// Returns the type of the file at a path below a directory, without following
/// links.
fn find(folder: &Path, below: &Path) -> io::Result<FileKind> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let mut place = rustix::fs::open(folder, flags, Mode::empty())?;
    let mut kind = FileType::Directory;
    for name in below {
        place = rustix::fs::openat(&place, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        kind = FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
        if kind == FileType::Symlink {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
    }
    Ok(match kind {
        FileType::Directory => FileKind::Folder,
        _ => FileKind::File,
    })
}

pub(super) fn host_path(volume: &str, path: &str, kind: &str) -> Result<Prepared, VolumeError> {
    let refuse = |reason: &str| VolumeError::HostPath {
        volume: volume.to_owned(),
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let there = Path::new(path);
    if !there.is_absolute() || there.components().any(|part| part == Component::ParentDir) {
        return Err(refuse("must be absolute and without \"..\""));
    }
    let made = match kind {
        "DirectoryOrCreate" if !there.exists() => make_folder(there, 0o755),
        "FileOrCreate" if !there.exists() => fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(there)
            .map(drop),
        // Like container runtimes, creates a missing path as an empty
        // directory.
        "" if !there.exists() => make_folder(there, 0o755),
        _ => Ok(()),
    };
    made.map_err(|error| refuse(&error.to_string()))?;
    let found = fs::metadata(there).map(|found| found.file_type());
    let fits = found.is_ok_and(|found| match kind {
        "Directory" | "DirectoryOrCreate" => found.is_dir(),
        "File" | "FileOrCreate" => found.is_file(),
        "Socket" => found.is_socket(),
        "CharDevice" => found.is_char_device(),
        "BlockDevice" => found.is_block_device(),
        _ => true,
    });
    if !fits {
        return Err(refuse(&format!("is not of type {kind}")));
    }
    Ok(Prepared {
        path: there.to_owned(),
        read_only: false,
        is_published: false,
    })
}

/// Returns the directory of a volume of type `local`, which must exist.
pub(super) fn local_path(volume: &str, path: &str) -> Result<Prepared, VolumeError> {
    let there = Path::new(path);
    let is_plain =
        there.is_absolute() && there.components().all(|part| part != Component::ParentDir);
    if !is_plain || !there.exists() {
        return Err(VolumeError::NoLocalPath {
            volume: volume.to_owned(),
            path: path.to_owned(),
        });
    }
    Ok(Prepared {
        path: there.to_owned(),
        read_only: false,
        is_published: false,
    })
}

/// Gives the directory of a claim's volume to a group unless the group already has it. Files of
/// other pods keep their group.
pub(super) fn share_with_group(folder: &Path, group: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.gid() == group && found.mode() & 0o2000 != 0 {
        return Ok(());
    }
    give_to_group(folder, group)
}

/// Gives an empty directory and its future entries to a group.
pub(super) fn give_to_group(folder: &Path, group: u32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = fs::File::from(rustix::fs::open(folder, flags, Mode::empty())?);
    fchown(&folder, None, Some(group))?;
    folder.set_permissions(fs::Permissions::from_mode(0o2777))
}

pub(super) fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)?;
    // The mode is changed afterwards, because the umask affects it at creation.
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
