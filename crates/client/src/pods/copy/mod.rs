//! Files into containers and out of them, by the container's own `tar`.

mod inward;
mod outward;
mod path;

use std::{path::PathBuf, sync::Arc, time::Duration};

use longshore_archive::Moved;
use tokio::io::AsyncReadExt;
use tokio_util::task::AbortOnDropHandle;

use super::session::{ExecOptions, Reader, Session};
use crate::error::{Error, Result};

/// The most bytes of `tar`'s messages that an error quotes.
const QUOTED: usize = 1000;
/// How long to wait for the other side's reason after a failure of this one.
const REASON_TIMEOUT: Duration = Duration::from_secs(5);

/// Called with what was copied so far.
pub type Progress = Arc<dyn Fn(&Moved) + Send + Sync>;

/// How files are copied.
///
/// ```
/// # longshore_embedded::example_in_pod("sleep 1000", async |pods| {
/// # let place = tempfile::tempdir()?;
/// # let (here, there) = (place.path().join("here"), place.path().join("there"));
/// # for folder in [&here, &there] { std::fs::create_dir(folder)?; }
/// # let there = there.to_str().unwrap();
/// use longshore_client::CopyOptions;
///
/// std::fs::write(here.join("data.csv"), "a,b\n")?;
/// let options = CopyOptions::default();
/// let copied = pods.copy_in("web", &here.join("data.csv"), there, &options).await?;
/// assert_eq!(copied.path, std::path::Path::new(there).join("data.csv"));
///
/// let back = pods.copy_out("web", there, &here.join("back"), &options).await?;
/// assert_eq!((back.moved.files, back.moved.bytes), (1, 4));
/// assert_eq!(std::fs::read(here.join("back/data.csv"))?, b"a,b\n");
/// # Ok(()) });
/// ```
#[derive(Clone, Default)]
pub struct CopyOptions {
    /// The container; needed when the pod has several and names no default.
    pub container: Option<String>,
    /// Called after each file, on a thread of its own.
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

    fn report(&self) -> impl Fn(&Moved) + Send + 'static {
        let progress = self.progress.clone();
        move |moved| {
            if let Some(progress) = &progress {
                progress(moved);
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

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Where it is now: on this machine, or in the container.
    pub path: PathBuf,
    /// Files, bytes, and what was left out.
    pub moved: Moved,
}

/// How a `tar` in a container ended; collected while its data moves.
struct Tar(AbortOnDropHandle<Result<Option<String>>>);

impl Tar {
    fn follow(mut session: Session) -> Self {
        let stderr = session.stderr();
        let end = async move {
            let (said, code) = tokio::join!(said(stderr), session.wait_for_end());
            Ok(match code? {
                0 => None,
                127 => Some(MISSING.to_owned()),
                code if said.is_empty() => Some(format!("tar ended with {code}")),
                _ => Some(said),
            })
        };
        Self(AbortOnDropHandle::new(tokio::spawn(end)))
    }

    /// What it complains of, if it failed.
    async fn end(self) -> Result<Option<String>> {
        let outcome = self.0.await.unwrap_or(Err(Error::Closed));
        outcome.or_else(|error| {
            let missing = error.status().is_some_and(|status| {
                status.message.contains("executable file not found")
                    || status.message.contains("no such file or directory")
            });
            if missing {
                Ok(Some(MISSING.to_owned()))
            } else {
                Err(error)
            }
        })
    }

    /// As `end`, for the failure of this side: what the other has to say of it
    /// may be the cause.
    async fn failure_reason(self) -> Option<String> {
        let end = tokio::time::timeout(REASON_TIMEOUT, self.end()).await;
        end.ok()?.unwrap_or_else(|error| Some(error.to_string()))
    }
}

const MISSING: &str = "the container has no tar, which copies need";

/// The beginning of what comes; the rest is read and dropped.
async fn said(reader: Option<Reader>) -> String {
    let (mut said, mut buffer) = (Vec::new(), [0; 1024]);
    if let Some(mut reader) = reader {
        while let Ok(length @ 1..) = reader.read(&mut buffer).await {
            let room = QUOTED - said.len();
            said.extend_from_slice(&buffer[..length.min(room)]);
        }
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}

/// Words of the other side may be meant for the terminal they are shown on:
/// no sign of control is among them.
fn failed(what: &str, problem: impl std::fmt::Display) -> Error {
    let plain = |sign: char| match sign {
        '\n' | '\t' => sign,
        sign if sign.is_control() => char::REPLACEMENT_CHARACTER,
        sign => sign,
    };
    Error::Copy {
        what: what.to_owned(),
        problem: problem
            .to_string()
            .chars()
            .take(QUOTED)
            .map(plain)
            .collect(),
    }
}
