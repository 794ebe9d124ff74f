//! From this machine to a container.

use std::{
    io::BufWriter,
    path::{Path, PathBuf},
};

use longshore_archive::{Moved, PackError, pack};
use tokio_util::io::SyncIoBridge;

use super::{super::session::Input, Copied, CopyOptions, Tar, failed, path::split};
use crate::{
    error::{Error, Result},
    item::Item,
    kinds::Pod,
    view::View,
};

/// Bytes that go to the container at once.
const PIECE: usize = 64 * 1024;

impl View<Pod> {
    /// Copies a file or a folder into a container. Into `to`, when that is a
    /// folder there, under its own name; else it becomes `to`, in a folder that
    /// is there; what is there is written over, and an error leaves there what
    /// was copied before it. Permissions and times are kept, links stay links, sockets,
    /// pipes and devices are left out and reported. The container needs `tar` and
    /// `test`, and the server must be of Kubernetes 1.30 or later.
    ///
    /// # Errors
    /// [`Error::Copy`] when a file cannot be read here or written there;
    /// [`Error::Invalid`] on an older server; as [`View::exec`].
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
        let problem = |problem: &str| failed(&what, problem);
        if let Err(error) = from.metadata() {
            return Err(failed(&what, error));
        }
        let test = ["test", "-d", to];
        let test = self
            .output(name, test, options.container.as_deref())
            .await?;
        let own;
        let (parent, file) = if test.code == 0 {
            // Also of `.` and links the name is what they stand for.
            let from = from.canonicalize().map_err(|error| failed(&what, error))?;
            let name = from.file_name().and_then(|name| name.to_str());
            own = name
                .ok_or_else(|| problem("its name is no text"))?
                .to_owned();
            (to, own.as_str())
        } else if to.ends_with('/') {
            return Err(problem("no such folder is in the container"));
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
        let moved = match sent(stdin, from.to_owned(), file.to_owned(), options).await? {
            Ok(moved) => match tar.end().await? {
                Some(problem) => return Err(failed(&what, problem)),
                None => moved,
            },
            Err(error @ PackError::Write(_)) => {
                let problem = tar.failure_reason().await;
                return Err(failed(&what, problem.unwrap_or(error.to_string())));
            }
            Err(error) => return Err(failed(&what, error)),
        };
        let path = PathBuf::from(parent).join(file);
        Ok(Copied { path, moved })
    }
}

impl Item<Pod> {
    /// As [`View::copy_in`], into this pod.
    ///
    /// # Errors
    /// As [`View::copy_in`].
    pub async fn copy_in(&self, from: &Path, to: &str, options: &CopyOptions) -> Result<Copied> {
        self.view().copy_in(self.name(), from, to, options).await
    }
}

/// Packs and sends, on a thread for things that block. When it gives up, the
/// input has no end that the other side would take for one: the session goes.
async fn sent(
    stdin: Option<Input>,
    from: PathBuf,
    file: String,
    options: &CopyOptions,
) -> Result<Result<Moved, PackError>> {
    let input = SyncIoBridge::new(stdin.ok_or(Error::Closed)?);
    let report = options.report();
    let work = move || {
        let mut input = BufWriter::with_capacity(PIECE, input);
        pack(&from, &file, &mut input, report)
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Error::Closed)
}
