//! Places of volumes: on the machine, and below a volume.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

use super::{Prepared, VolumeError};

/// A path that stays below its volume.
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

/// The place of a `subPath` in a volume, made as a folder when it is missing
/// and may be made.
pub(crate) fn sub_path(
    volume: &str,
    prepared: &Prepared,
    sub_path: &str,
) -> Result<PathBuf, VolumeError> {
    if sub_path.is_empty() {
        return Ok(prepared.path.clone());
    }
    let path = prepared.path.join(relative(volume, sub_path)?);
    if !prepared.read_only {
        let system = |source| VolumeError::System {
            volume: volume.to_owned(),
            source,
        };
        if !path.exists() {
            make_folder(&path, 0o777).map_err(system)?;
        }
    }
    Ok(path)
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
        // A real node makes what is missing as an empty folder; see runtimes' bind mounts.
        "" if !there.exists() => make_folder(there, 0o755),
        _ => Ok(()),
    };
    made.map_err(|error| refuse(&error.to_string()))?;
    let fits = match kind {
        "Directory" | "DirectoryOrCreate" => there.is_dir(),
        "File" | "FileOrCreate" => there.is_file(),
        _ => there.exists(),
    };
    if !fits {
        return Err(refuse(&format!("is not of type {kind}")));
    }
    Ok(Prepared {
        path: there.to_owned(),
        read_only: false,
    })
}

pub(super) fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)?;
    // By chmod, since the umask takes bits from what is made.
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
