//! Copies files into containers.

use std::{
    io::BufWriter,
    path::{Path, PathBuf},
};

use longshore_archive::{PackError, Transferred, pack};
use tokio_util::io::SyncIoBridge;

use super::{super::session::Input, Copied, CopyOptions, Tar, copy_error, path::split};
use crate::{
    error::{Error, Result},
    item::Item,
    kinds::Pod,
    view::View,
};

/// The size of the write buffer, in bytes.
const BUFFER: usize = 64 * 1024;

impl View<Pod> {
    /// Copies a file or a folder into a container. If `to` is an existing folder, the copy is
    /// created in it, with the name of `from`. Otherwise the copy is created as `to`, whose
    /// parent must exist.
    ///
    /// Existing files are overwritten. If the copy fails, the files that were already copied
    /// remain. Permissions, times and symbolic links are preserved. Sockets, pipes and devices
    /// are skipped and reported. The container needs `tar` and `test`, and the server must
    /// have Kubernetes 1.30 or later.
    ///
    /// # Errors
    /// [`Error::Copy`] if a file cannot be read on this machine or written in the container,
    /// [`Error::Invalid`] on an older server, and the errors of [`View::exec`].
    ///
    /// [`CopyOptions`] has an example.
    pub async fn copy_in(
        &self,
        name: &str,
        from: &Path,
        to: &str,
        options: &CopyOptions,
    ) -> Result<Copied> {
        let what = format!("{} to {name}:{to}", from.display());
        let problem = |problem: &str| copy_error(&what, problem);
        if let Err(error) = from.metadata() {
            return Err(copy_error(&what, error));
        }
        let test = ["test", "-d", to];
        let test = self
            .output(name, test, options.container.as_deref())
            .await?;
        let source_name;
        let (parent, file) = if test.code == 0 {
            // Resolves `.` and symbolic links to the name of their target.
            let from = from
                .canonicalize()
                .map_err(|error| copy_error(&what, error))?;
            let name = from.file_name().and_then(|name| name.to_str());
            source_name = name
                .ok_or_else(|| problem("the name of the source is not UTF-8"))?
                .to_owned();
            (to, source_name.as_str())
        } else if to.ends_with('/') {
            return Err(problem("the container has no such folder"));
        } else {
            split(to).map_err(problem)?
        };
        let command = ["tar", "-xf", "-", "-C", parent];
        let mut session = self.exec(name, command, &options.exec(true)).await?;
        if !session.ends_input() {
            return Err(Error::Invalid(format!(
                "cannot copy {what}: servers before Kubernetes 1.30 do not recognize the end of the data"
            )));
        }
        let stdin = session.stdin();
        let tar = Tar::follow(session);
        let transferred = match pack_into(stdin, from.to_owned(), file.to_owned(), options).await? {
            Ok(transferred) => match tar.end().await? {
                Some(problem) => return Err(copy_error(&what, problem)),
                None => transferred,
            },
            Err(error @ PackError::Write(_)) => {
                let problem = tar.failure_reason().await;
                return Err(copy_error(&what, problem.unwrap_or(error.to_string())));
            }
            Err(error) => return Err(copy_error(&what, error)),
        };
        let path = PathBuf::from(parent).join(file);
        Ok(Copied { path, transferred })
    }
}

impl Item<Pod> {
    /// Like [`View::copy_in`], for this pod.
    ///
    /// # Errors
    /// The same as [`View::copy_in`].
    pub async fn copy_in(&self, from: &Path, to: &str, options: &CopyOptions) -> Result<Copied> {
        self.view().copy_in(self.name(), from, to, options).await
    }
}

/// Packs the files and sends the archive, on a thread for blocking work. After a failure, the
/// session is closed without the end of the input, so that `tar` does not take the truncated
/// archive for a complete one.
async fn pack_into(
    stdin: Option<Input>,
    from: PathBuf,
    file: String,
    options: &CopyOptions,
) -> Result<Result<Transferred, PackError>> {
    let input = SyncIoBridge::new(stdin.ok_or(Error::Closed)?);
    let report = options.report();
    let work = move || {
        let mut input = BufWriter::with_capacity(BUFFER, input);
        pack(&from, &file, &mut input, report)
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Error::Closed)
}
