//! Files of a volume are written into a folder of their own, to which the link
//! `..data` leads; an update makes a new folder and swaps the link, so that no reader sees
//! half of it.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

/// A file to be in a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileToBe {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

/// Files by path below the volume.
pub(crate) type Files = BTreeMap<PathBuf, FileToBe>;

/// Writes `files` into a new folder and lets `..data` lead to it.
pub(crate) fn publish(volume: &Path, files: &Files) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(volume)?;
    let data = volume.join("..data");
    let old = fs::read_link(&data).ok();
    if let Some(old) = &old
        && same(&volume.join(old), files)
    {
        return Ok(());
    }
    let generation = old
        .as_ref()
        .and_then(|old| old.to_str()?.strip_prefix("..")?.parse::<u64>().ok())
        .map_or(1, |generation| generation + 1);
    let name = format!("..{generation}");
    let folder = volume.join(&name);
    // Left over from a write that was cut off.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder)?;
    for (path, file) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))?;
    }
    let swap = volume.join("..data_tmp");
    let _ = fs::remove_file(&swap);
    symlink(&name, &swap)?;
    fs::rename(&swap, &data)?;
    link_entries(volume, files)?;
    if let Some(old) = old {
        let _ = fs::remove_dir_all(volume.join(old));
    }
    Ok(())
}

/// Whether the folder has just these files.
fn same(folder: &Path, files: &Files) -> bool {
    let equal = |(path, file): (&PathBuf, &FileToBe)| {
        fs::read(folder.join(path)).is_ok_and(|bytes| bytes == file.bytes)
    };
    folder.is_dir() && count_files(folder) == files.len() && files.iter().all(equal)
}

fn count_files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            if entry.path().is_dir() {
                count_files(&entry.path())
            } else {
                1
            }
        })
        .sum()
}

/// Top-level names lead through `..data`; names that are gone lose their link.
fn link_entries(volume: &Path, files: &Files) -> io::Result<()> {
    let wanted: std::collections::BTreeSet<_> =
        files.keys().filter_map(|path| path.iter().next()).collect();
    for entry in fs::read_dir(volume)? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(".."));
        if !ours && !wanted.contains(name.as_os_str()) && entry.file_type()?.is_symlink() {
            fs::remove_file(entry.path())?;
        }
    }
    for name in wanted {
        let link = volume.join(name);
        if link.symlink_metadata().is_err() {
            symlink(Path::new("..data").join(name), link)?;
        }
    }
    Ok(())
}
