//! Copies files out of containers.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use longshore_archive::{Transferred, Unpack, UnpackError, unpack};
use tempfile::TempDir;
use tokio_util::io::SyncIoBridge;

use super::{super::session::Reader, Copied, CopyOptions, Tar, copy_error, path::split};
use crate::{
    error::{Error, Result},
    item::Item,
    kinds::Pod,
    view::View,
};

/// The maximum number of bytes after the end of an archive: `tar` fills its last record, of 10 KiB
/// by default.
const MAX_TRAILING_BYTES: u64 = 4 << 20;

impl View<Pod> {
    /// Copies a file or a folder out of a container. If `to` is an existing folder, the copy is
    /// created in it, with the name of `from`. Otherwise the copy is created as `to`, whose
    /// parent must exist. The copy is created atomically. An existing file is replaced, an
    /// existing folder is an error.
    ///
    /// The container is not trusted: no files are written outside the destination. Symbolic
    /// links out of the copied folder, devices and pipes are skipped and reported. The
    /// container needs `tar`.
    ///
    /// # Errors
    /// [`Error::Copy`] if the file does not exist, the container has no `tar`, or the copy cannot
    /// be written, and the errors of [`View::exec`].
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
        let (parent, file) = split(from).map_err(|problem| copy_error(&what, problem))?;
        let path = destination(to, file).map_err(|problem| copy_error(&what, problem))?;
        let staging = staging_dir(&path).map_err(|error| copy_error(&what, error))?;
        // `./` keeps tar from reading a name such as `-x` as an option.
        let member = format!("./{file}");
        let command = ["tar", "-cf", "-", "-C", parent, member.as_str()];
        let mut session = self.exec(name, command, &options.exec(false)).await?;
        let stdout = session.stdout();
        let tar = Tar::follow(session);
        let (transferred, staging) = match unpack_from(stdout, staging, options).await? {
            Ok(unpacked) => match tar.end().await? {
                Some(problem) => return Err(copy_error(&what, problem)),
                None => unpacked,
            },
            Err(error @ UnpackError::Read(_)) => {
                let problem = tar.failure_reason().await;
                return Err(copy_error(&what, problem.unwrap_or(error.to_string())));
            }
            Err(error) => return Err(copy_error(&what, error)),
        };
        move_into_place(&staging.path().join(file), &path, &transferred)
            .map_err(|problem| copy_error(&what, problem))?;
        Ok(Copied { path, transferred })
    }
}

impl Item<Pod> {
    /// Like [`View::copy_out`], for this pod.
    ///
    /// # Errors
    /// The same as [`View::copy_out`].
    pub async fn copy_out(&self, from: &str, to: &Path, options: &CopyOptions) -> Result<Copied> {
        self.view().copy_out(self.name(), from, to, options).await
    }
}

/// Returns the path of the copy.
fn destination(to: &Path, file: &str) -> Result<PathBuf, String> {
    let path = if to.is_dir() {
        to.join(file)
    } else {
        to.to_owned()
    };
    if path.is_dir() {
        let path = path.display();
        return Err(format!(
            "the folder {path} already exists: delete it, or choose another path"
        ));
    }
    Ok(path)
}

/// Creates a temporary folder next to the destination. A rename from there is atomic.
fn staging_dir(destination: &Path) -> Result<TempDir, String> {
    let parent = destination
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let staging = tempfile::Builder::new()
        .prefix(".longshore-copy-")
        .tempdir_in(parent);
    staging.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("the folder {} does not exist", parent.display()),
        _ => format!("cannot write to {}: {error}", parent.display()),
    })
}

/// Receives and unpacks the archive, on a thread for blocking work.
async fn unpack_from(
    stdout: Option<Reader>,
    staging: TempDir,
    options: &CopyOptions,
) -> Result<Result<(Transferred, TempDir), UnpackError>> {
    let mut archive = SyncIoBridge::new(stdout.ok_or(Error::Closed)?);
    let report = options.report();
    let work = move || {
        let options = Unpack {
            as_found: true,
            ..Unpack::default()
        };
        let transferred = unpack(&mut archive, staging.path(), &options, report)?;
        read_padding(archive).map_err(UnpackError::Read)?;
        Ok((transferred, staging))
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Error::Closed)
}

/// Reads the padding after the end of an archive, so that `tar` can write it and end.
fn read_padding(archive: impl Read) -> io::Result<()> {
    let mut padding = archive.take(MAX_TRAILING_BYTES + 1);
    if io::copy(&mut padding, &mut io::sink())? > MAX_TRAILING_BYTES {
        let problem = format!("more than {MAX_TRAILING_BYTES} bytes follow its end");
        return Err(io::Error::other(problem));
    }
    Ok(())
}

/// Moves the unpacked file or folder to its destination.
fn move_into_place(
    unpacked: &Path,
    destination: &Path,
    transferred: &Transferred,
) -> Result<(), String> {
    let Ok(metadata) = unpacked.symlink_metadata() else {
        return Err(match transferred.left_out.first() {
            Some((_, problem)) => format!("it {problem}"),
            None => "the archive does not contain it".to_owned(),
        });
    };
    if metadata.is_symlink() {
        let target = unpacked.read_link().unwrap_or_default();
        let target = target.display();
        return Err(format!(
            "it is a symbolic link to {target}: copy the target"
        ));
    }
    fs::rename(unpacked, destination)
        .map_err(|error| format!("cannot write {}: {error}", destination.display()))
}
