//! Writes files of a volume into a new directory to which the link `..data`
//! points. An update creates another directory and swaps the link, so that
//! readers see no partial update.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, symlink},
    path::{Path, PathBuf},
};

use longshore_files::remove_tree;

/// Permissions of a pod's `fsGroup` on files and directories that the node
/// creates (as with the kubelet).
const GROUP_READS: u32 = 0o440;
const GROUP_ENTERS: u32 = 0o550;
const SET_GROUP: u32 = 0o2000;

/// A file to create in a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VolumeFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
    /// The owner, if different from the agent.
    pub(crate) user: Option<u32>,
}

/// Files by path below the volume.
pub(crate) type Files = BTreeMap<PathBuf, VolumeFile>;

/// Writes `files` into a new directory and points `..data` to it. The files belong to `group`, if
/// it is set.
pub(crate) fn publish(volume: &Path, files: &Files, group: Option<u32>) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(volume)?;
    let data = volume.join("..data");
    let old = generation(&data);
    let path_of = |generation: u64| volume.join(format!("..{generation}"));
    if let Some(old) = old
        && is_unchanged(&path_of(old), files)
    {
        return Ok(());
    }
    let name = format!("..{}", old.map_or(1, |old| old.saturating_add(1)));
    let folder = volume.join(&name);
    // The directory may remain from an interrupted write.
    let _ = remove_tree(&folder);
    fs::create_dir(&folder)?;
    for (path, file) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        write(&path, file, group)?;
    }
    if let Some(group) = group {
        for below in folders(files) {
            give_folder(&folder.join(below), group)?;
        }
        give_folder(volume, group)?;
    }
    let swap = volume.join("..data_tmp");
    let _ = fs::remove_file(&swap);
    symlink(&name, &swap)?;
    fs::rename(&swap, &data)?;
    link_entries(volume, files)?;
    if let Some(old) = old {
        let _ = remove_tree(&path_of(old));
    }
    Ok(())
}

/// Writes a file. No other user can read it before its owner is set.
fn write(path: &Path, file: &VolumeFile, group: Option<u32>) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut open = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    open.write_all(&file.bytes)?;
    if file.user.is_some() || group.is_some() {
        fchown(&open, file.user, group)?;
    }
    let shared = if group.is_some() { GROUP_READS } else { 0 };
    open.set_permissions(fs::Permissions::from_mode(file.mode | shared))
}

/// Returns the number of the directory that a link `..data` names, or `None` for links that the
/// agent did not create.
fn generation(data: &Path) -> Option<u64> {
    let target = fs::read_link(data).ok()?;
    target.to_str()?.strip_prefix("..")?.parse().ok()
}

/// Returns the directories of these files, including the one that contains all of them.
fn folders(files: &Files) -> BTreeSet<&Path> {
    let mut folders = BTreeSet::from([Path::new("")]);
    for path in files.keys() {
        let above = path.ancestors().skip(1);
        // If one directory is known, its parents are known, too.
        above
            .take_while(|folder| folders.insert(folder))
            .for_each(drop);
    }
    folders
}

fn give_folder(folder: &Path, group: u32) -> io::Result<()> {
    let folder = fs::File::open(folder)?;
    fchown(&folder, None, Some(group))?;
    let mode = folder.metadata()?.mode() | GROUP_ENTERS | SET_GROUP;
    folder.set_permissions(fs::Permissions::from_mode(mode & 0o7777))
}

/// Returns the directory with a volume's current files.
pub(super) fn current_dir(volume: &Path) -> PathBuf {
    match fs::read_link(volume.join("..data")) {
        Ok(name) => volume.join(name),
        Err(_) => volume.to_owned(),
    }
}

/// Returns true if the directory contains exactly these files.
fn is_unchanged(folder: &Path, files: &Files) -> bool {
    let equal = |(path, file): (&PathBuf, &VolumeFile)| {
        fs::read(folder.join(path)).is_ok_and(|bytes| bytes == file.bytes)
    };
    folder.is_dir() && count_files(folder) == files.len() && files.iter().all(equal)
}

/// Counts the files below a directory that the agent has written.
fn count_files(folder: &Path) -> usize {
    let mut count = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => folders.push(entry.path()),
                false => count += 1,
            }
        }
    }
    count
}

/// Links top-level names through `..data` and removes links of names that no
/// longer exist.
fn link_entries(volume: &Path, files: &Files) -> io::Result<()> {
    let wanted: BTreeSet<_> = files.keys().filter_map(|path| path.iter().next()).collect();
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
