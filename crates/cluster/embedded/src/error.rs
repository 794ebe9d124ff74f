//! Errors of starting and stopping an embedded cluster. Messages do not repeat their source, so
//! print the whole chain.

use std::{io, path::PathBuf};

use longshore_node::MAX_NODES;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// The reason why an embedded cluster failed to start or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder of the instance cannot be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The operation: "create", "read", …
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another user owns a file or directory of the instance, or may write to it.
    #[error("{} is not safe to use: {problem}", path.display())]
    Untrusted {
        /// The path.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// Another process uses the instance's folder.
    #[error("another process uses the folder {}", .0.display())]
    Busy(PathBuf),
    /// The folder of a running cluster was removed, renamed or replaced.
    #[error(
        "the cluster stops, because its folder {} was removed, renamed or replaced",
        .0.display()
    )]
    FolderGone(PathBuf),
    /// A cluster that stores its objects on disk cannot start from a snapshot.
    #[error("only an ephemeral cluster starts from a snapshot")]
    StoredSnapshot,
    /// The cluster cannot return to a snapshot.
    #[error("cannot return to the snapshot")]
    Restore(#[source] longshore_engine::Error),
    /// The options ask for too many nodes.
    #[error("an embedded cluster has at most {MAX_NODES} nodes, not {0}")]
    TooManyNodes(u8),
    /// The endpoint's address is not a loopback address.
    #[error("the embedded cluster serves loopback addresses only, not {0}")]
    NotLoopback(std::net::SocketAddr),
    /// The endpoint cannot listen on its address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The kubeconfig file contains other clusters.
    #[error(
        "{} contains other clusters and was not changed; specify a separate file for the embedded cluster",
        .0.display()
    )]
    ForeignKubeconfig(PathBuf),
    /// The file of the audit log cannot be opened, or is not a regular file of the user.
    #[error("cannot write the audit log to {}", path.display())]
    AuditLog {
        /// The path of the log.
        path: PathBuf,
        /// The cause.
        source: Source,
    },
    /// The policy of the audit log has a mistake.
    #[error("cannot use {}", path.display())]
    AuditPolicy {
        /// The path of the policy.
        path: PathBuf,
        /// The mistake.
        source: longshore_apiserver::AuditPolicyError,
    },
    /// A component of the cluster failed to start.
    #[error("the {part} of the embedded cluster failed to start")]
    Part {
        /// The component: "store", "controllers", "node", "certificates".
        part: &'static str,
        /// The cause.
        source: Source,
    },
    /// The background process exited before it was ready.
    #[error("the embedded cluster did not start{}", reason(.message))]
    Spawn {
        /// The error that it reported, if any.
        message: Option<String>,
        /// The last lines of the process's log.
        log: Vec<String>,
        /// The path of the log.
        log_path: PathBuf,
    },
    /// The background process did not become ready or did not stop in time.
    #[error("the embedded cluster in {} did not {what} within {seconds} s", dir.display())]
    Stuck {
        /// The expected transition: "get ready", "stop".
        what: &'static str,
        /// The instance's folder.
        dir: PathBuf,
        /// The timeout.
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
    /// Returns true if the file system has no space, or became read-only.
    pub(crate) fn is_storage(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let Self::File { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            StorageFull | QuotaExceeded | ReadOnlyFilesystem
        )
    }

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
