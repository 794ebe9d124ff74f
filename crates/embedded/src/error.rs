//! Why an embedded cluster does not start or stop. Messages do not repeat
//! their source; whoever prints one prints the chain.

use std::{io, path::PathBuf};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why an embedded cluster does not start or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder of the instance cannot be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried: "create", "read", …
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another user owns a file or directory of the instance, or may write to it.
    #[error("{} is not safe to use: {problem}", path.display())]
    Untrusted {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// Another process owns the instance's folder.
    #[error("another process uses the folder {}", .0.display())]
    Busy(PathBuf),
    /// The endpoint must be on loopback.
    #[error("the embedded cluster serves loopback addresses only, not {0}")]
    NotLoopback(std::net::SocketAddr),
    /// The endpoint cannot be opened.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The kubeconfig file belongs to someone else.
    #[error(
        "{} holds other clusters than the embedded one and is left as it is; name a file of its own",
        .0.display()
    )]
    ForeignKubeconfig(PathBuf),
    /// A part of the cluster does not start.
    #[error("the {part} of the embedded cluster does not start")]
    Part {
        /// Which: "store", "controllers", "node", "certificates".
        part: &'static str,
        /// Why not.
        source: Source,
    },
    /// The background process ended before it was ready.
    #[error("the embedded cluster did not start{}", reason(.message))]
    Spawn {
        /// What it said, if anything.
        message: Option<String>,
        /// The last lines of its log.
        log: Vec<String>,
        /// Where the whole log is.
        log_path: PathBuf,
    },
    /// The background process neither gets ready nor gives up, or does not end.
    #[error("the embedded cluster in {} does not {what} within {seconds} s", dir.display())]
    Stuck {
        /// What it should do: "get ready", "stop".
        what: &'static str,
        /// The instance's folder.
        dir: PathBuf,
        /// How long we waited.
        seconds: u64,
    },
}

impl From<longshore_files::Error> for Error {
    fn from(error: longshore_files::Error) -> Self {
        match error {
            longshore_files::Error::Untrusted {
                path,
                problem,
                remedy,
            } => Self::Untrusted {
                path,
                problem,
                remedy,
            },
            longshore_files::Error::Io {
                action,
                path,
                source,
            } => Self::File {
                action,
                path,
                source,
            },
            other => Self::part("files")(other),
        }
    }
}

fn reason(message: &Option<String>) -> String {
    message
        .as_ref()
        .map(|text| format!(": {text}"))
        .unwrap_or_default()
}

impl Error {
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }

    pub(crate) fn part<E>(part: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Source>,
    {
        move |source| Self::Part {
            part,
            source: source.into(),
        }
    }
}
