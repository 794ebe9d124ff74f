//! Applies an order to the folder of the code: each file is replaced by one rename.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use longshore_archive::clean;

/// Removes `removed`, then moves the files of the folder `staged` into `work`. No path leads
/// through a link. Files that the command has created are kept, unless a new file has the same
/// name.
pub(super) fn apply(work: &Path, removed: &[String], staged: Option<&Path>) -> Result<(), String> {
    for path in removed {
        remove(work, Path::new(path))?;
    }
    match staged {
        Some(staged) => move_into(staged, work).map_err(|(path, error)| {
            let shown = path.strip_prefix(work).unwrap_or(&path);
            format!("cannot write {}: {error}", shown.display())
        }),
        None => Ok(()),
    }
}

/// Removes a file, a link or an empty folder. A folder with files of the command is kept.
fn remove(work: &Path, path: &Path) -> Result<(), String> {
    let inside = clean(path).map_err(|problem| format!("{}: {problem}", path.display()))?;
    if inside.as_os_str().is_empty() {
        return Err("the folder of the code cannot be removed".to_owned());
    }
    let mut full = work.to_owned();
    for part in inside.parent().into_iter().flat_map(Path::components) {
        full.push(part);
        match full.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            // The folder was removed or replaced, so the path does not exist.
            _ => return Ok(()),
        }
    }
    let full = work.join(&inside);
    let removed = match full.symlink_metadata() {
        Ok(found) if found.is_dir() => match fs::remove_dir(&full) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => removed,
        },
        Ok(_) => fs::remove_file(&full),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", inside.display()))
        }
        _ => Ok(()),
    }
}

type Moved = Result<(), (PathBuf, io::Error)>;

fn move_into(from: &Path, to: &Path) -> Moved {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| (path.clone(), error)
    };
    for entry in fs::read_dir(from).map_err(at(to))? {
        let entry = entry.map_err(at(to))?;
        let target = to.join(entry.file_name());
        let is_folder = entry.file_type().map_err(at(&target))?.is_dir();
        let existing = target.symlink_metadata().ok();
        if !is_folder {
            if let Some(existing) = existing {
                if existing.is_dir() {
                    // Fails if the command has created files there.
                    fs::remove_dir(&target).map_err(at(&target))?;
                } else {
                    set_newer(&entry.path(), &existing).map_err(at(&target))?;
                }
            }
            fs::rename(entry.path(), &target).map_err(at(&target))?;
            continue;
        }
        if !existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            if existing.is_some() {
                fs::remove_file(&target).map_err(at(&target))?;
            }
            fs::create_dir(&target).map_err(at(&target))?;
        }
        move_into(&entry.path(), &target)?;
    }
    Ok(())
}

/// Makes a file at least one second newer than the file that it replaces. Python recognizes changed
/// modules by their size and the second of their change.
fn set_newer(path: &Path, older: &fs::Metadata) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    if !found.is_file() || !older.is_file() {
        return Ok(());
    }
    let next = older.modified()?.checked_add(Duration::from_secs(1));
    match next {
        Some(next) if next > found.modified()? => fs::File::options()
            .write(true)
            .open(path)?
            .set_modified(next),
        _ => Ok(()),
    }
}
