//! Copies files into and out of containers with the container's `tar`.

mod copy_in;
mod copy_out;
mod path;

use std::{path::PathBuf, sync::Arc, time::Duration};

use longshore_archive::Transferred;
use tokio::io::AsyncReadExt;
use tokio_util::task::AbortOnDropHandle;

use super::session::{ExecOptions, Reader, Session};
use crate::error::{Error, Result};

/// The maximum length of `tar`'s messages that an error quotes, in bytes.
const MAX_QUOTED_BYTES: usize = 1000;
/// The timeout for the message of `tar` after a failure on this side.
const REASON_TIMEOUT: Duration = Duration::from_secs(5);

/// A callback that reports the number of files and bytes copied so far.
pub type Progress = Arc<dyn Fn(&Transferred) + Send + Sync>;

/// Options of [`View::copy_in`](crate::View::copy_in) and
/// [`View::copy_out`](crate::View::copy_out).
///
/// ```
/// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
/// # let temporary = tempfile::tempdir()?;
/// # let (local, remote) = (temporary.path().join("local"), temporary.path().join("remote"));
/// # for folder in [&local, &remote] { std::fs::create_dir(folder)?; }
/// # let remote = remote.to_str().unwrap();
/// use longshore_client::CopyOptions;
///
/// std::fs::write(local.join("data.csv"), "a,b\n")?;
/// let options = CopyOptions::default();
/// let copied = pods.copy_in("web", &local.join("data.csv"), remote, &options).await?;
/// assert_eq!(copied.path, std::path::Path::new(remote).join("data.csv"));
///
/// let back = pods.copy_out("web", remote, &local.join("back"), &options).await?;
/// assert_eq!((back.transferred.files, back.transferred.bytes), (1, 4));
/// assert_eq!(std::fs::read(local.join("back/data.csv"))?, b"a,b\n");
/// # Ok(()) });
/// ```
#[derive(Clone, Default)]
pub struct CopyOptions {
    /// The container. Required if the pod has several containers and no default container.
    pub container: Option<String>,
    /// Called after each file, on a thread for blocking work.
    pub progress: Option<Progress>,
}

impl CopyOptions {
    fn exec(&self, stdin: bool) -> ExecOptions {
        ExecOptions {
            container: self.container.clone(),
            stdin,
            tty: false,
        }
    }

    fn report(&self) -> impl Fn(&Transferred) + Send + 'static {
        let progress = self.progress.clone();
        move |transferred| {
            if let Some(progress) = &progress {
                progress(transferred);
            }
        }
    }
}

impl std::fmt::Debug for CopyOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CopyOptions")
            .field("container", &self.container)
            .finish_non_exhaustive()
    }
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// The path of the copy, on this machine or in the container.
    pub path: PathBuf,
    /// The number of files and bytes, and the entries that were skipped.
    pub transferred: Transferred,
}

/// A running `tar` in a container. A task collects its messages and its exit code while the
/// data is transferred.
struct Tar(AbortOnDropHandle<Result<Option<String>>>);

impl Tar {
    fn follow(mut session: Session) -> Self {
        let stderr = session.stderr();
        let end = async move {
            let (message, code) = tokio::join!(read_message(stderr), session.wait_for_end());
            Ok(match code? {
                0 => None,
                127 => Some(NO_TAR.to_owned()),
                code if message.is_empty() => Some(format!("tar failed with exit code {code}")),
                _ => Some(message),
            })
        };
        Self(AbortOnDropHandle::new(tokio::spawn(end)))
    }

    /// Waits for the end of `tar` and returns its messages if it failed.
    async fn end(self) -> Result<Option<String>> {
        let outcome = self.0.await.unwrap_or(Err(Error::Closed));
        outcome.or_else(|error| {
            let missing = error.status().is_some_and(|status| {
                status.message.contains("executable file not found")
                    || status.message.contains("no such file or directory")
            });
            if missing {
                Ok(Some(NO_TAR.to_owned()))
            } else {
                Err(error)
            }
        })
    }

    /// Like [`Tar::end`], with a timeout. After a failure on this side, the messages of `tar`
    /// may contain the cause.
    async fn failure_reason(self) -> Option<String> {
        let end = tokio::time::timeout(REASON_TIMEOUT, self.end()).await;
        end.ok()?.unwrap_or_else(|error| Some(error.to_string()))
    }
}

const NO_TAR: &str = "the container has no tar, which is required to copy files";

/// Reads an output to its end and returns the beginning.
async fn read_message(reader: Option<Reader>) -> String {
    let (mut message, mut buffer) = (Vec::new(), [0; 1024]);
    if let Some(mut reader) = reader {
        while let Ok(length @ 1..) = reader.read(&mut buffer).await {
            let remaining = MAX_QUOTED_BYTES - message.len();
            message.extend_from_slice(&buffer[..length.min(remaining)]);
        }
    }
    String::from_utf8_lossy(&message).trim().to_owned()
}

/// Returns the error for a failed copy. The problem may contain text from the container, which
/// is not trusted: replaces control characters, which could control the user's terminal.
fn copy_error(what: &str, problem: impl std::fmt::Display) -> Error {
    let printable = |char: char| match char {
        '\n' | '\t' => char,
        char if char.is_control() => char::REPLACEMENT_CHARACTER,
        char => char,
    };
    Error::Copy {
        what: what.to_owned(),
        problem: problem
            .to_string()
            .chars()
            .take(MAX_QUOTED_BYTES)
            .map(printable)
            .collect(),
    }
}
