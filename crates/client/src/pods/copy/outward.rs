//! From a container to this machine.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use longshore_archive::{Moved, Unpack, UnpackError, unpack};
use tempfile::TempDir;
use tokio_util::io::SyncIoBridge;

use super::{super::session::Reader, Copied, CopyOptions, Tar, failed, path::split};
use crate::{
    error::{Error, Result},
    item::Item,
    kinds::Pod,
    view::View,
};

impl View<Pod> {
    /// Copies a file or a folder out of a container. Into `to`, when that is a
    /// folder, under its own name; else it becomes `to`, in a folder that is
    /// there. What is there appears as a whole or not at all; a file of that
    /// name is replaced, a folder is not.
    ///
    /// The container is not trusted: nothing is written elsewhere. Links out of
    /// the copied folder, devices and pipes are left out and reported. The
    /// container needs a `tar`.
    ///
    /// # Errors
    /// [`Error::Copy`] when there is no such file, no `tar`, or no room; as
    /// [`View::exec`].
    ///
    /// [`CopyOptions`] has an example.
    pub async fn copy_out(
        &self,
        name: &str,
        from: &str,
        to: &Path,
        options: &CopyOptions,
    ) -> Result<Copied> {
        let what = format!("{name}:{from}");
        let (parent, file) = split(from).map_err(|problem| failed(&what, problem))?;
        let place = place(to, file).map_err(|problem| failed(&what, problem))?;
        let room = room(&place).map_err(|error| failed(&what, error))?;
        let inside = format!("./{file}");
        let command = ["tar", "-cf", "-", "-C", parent, inside.as_str()];
        let mut session = self.exec(name, command, &options.exec(false)).await?;
        let stdout = session.stdout();
        let tar = Tar::follow(session);
        let moved = match received(stdout, room, options).await? {
            Ok((moved, room)) => match tar.end().await? {
                Some(problem) => return Err(failed(&what, problem)),
                None => (moved, room),
            },
            Err(error @ UnpackError::Read(_)) => {
                let problem = tar.failure_reason().await;
                return Err(failed(&what, problem.unwrap_or(error.to_string())));
            }
            Err(error) => return Err(failed(&what, error)),
        };
        let (moved, room) = moved;
        settle(&room.path().join(file), &place, &moved)
            .map_err(|problem| failed(&what, problem))?;
        let path = place;
        Ok(Copied { path, moved })
    }
}

impl Item<Pod> {
    /// As [`View::copy_out`], of this pod.
    ///
    /// # Errors
    /// As [`View::copy_out`].
    pub async fn copy_out(&self, from: &str, to: &Path, options: &CopyOptions) -> Result<Copied> {
        self.view().copy_out(self.name(), from, to, options).await
    }
}

/// Where the copy will be.
fn place(to: &Path, file: &str) -> Result<PathBuf, String> {
    let place = if to.is_dir() {
        to.join(file)
    } else {
        to.to_owned()
    };
    if place.is_dir() {
        let place = place.display();
        return Err(format!(
            "{place} is a folder that is there already: remove it, or name another place"
        ));
    }
    Ok(place)
}

/// A folder beside the place, from which the whole can be moved there at once.
fn room(place: &Path) -> Result<TempDir, String> {
    let parent = place
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let room = tempfile::Builder::new()
        .prefix(".longshore-copy-")
        .tempdir_in(parent);
    room.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("the folder {} is not there", parent.display()),
        _ => format!("cannot write in {}: {error}", parent.display()),
    })
}

/// Unpacks what comes, on a thread for things that block.
async fn received(
    stdout: Option<Reader>,
    room: TempDir,
    options: &CopyOptions,
) -> Result<Result<(Moved, TempDir), UnpackError>> {
    let archive = SyncIoBridge::new(stdout.ok_or(Error::Closed)?);
    let report = options.report();
    let work = move || {
        let options = Unpack {
            as_found: true,
            ..Unpack::default()
        };
        let moved = unpack(archive, room.path(), &options, report)?;
        Ok((moved, room))
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Error::Closed)
}

/// Moves what was unpacked to its place.
fn settle(unpacked: &Path, place: &Path, moved: &Moved) -> Result<(), String> {
    let Ok(found) = unpacked.symlink_metadata() else {
        return Err(match moved.left_out.first() {
            Some((_, problem)) => format!("it {problem}"),
            None => "nothing came of it".to_owned(),
        });
    };
    if found.is_symlink() {
        let target = unpacked.read_link().unwrap_or_default();
        return Err(format!("it is a link to {}: copy that", target.display()));
    }
    fs::rename(unpacked, place)
        .map_err(|error| format!("cannot write {}: {error}", place.display()))
}
