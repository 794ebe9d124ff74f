//! User-facing errors with cause and hint, and their exit codes.

use std::{error::Error as StdError, process::ExitCode};

use longshore_embedded as embedded;

use crate::hints;

/// The kind of a failure, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Invalid arguments, folder or configuration.
    Usage,
    /// The cluster does not respond or denies access.
    Cluster,
    /// The job could not be started.
    NotStarted,
    /// The object does not exist, or the server returned an error.
    Failed,
    /// The user interrupted the command.
    Interrupted,
}

/// A failure of the program.
#[derive(Debug)]
pub(crate) struct Error {
    kind: Kind,
    message: String,
    details: Vec<String>,
    hint: Option<String>,
}

/// The result type of the program's functions.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: Vec::new(),
            hint: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn interrupted() -> Self {
        Self::new(Kind::Interrupted, "interrupted")
    }

    /// Creates an error with the whole chain of causes as message.
    pub(crate) fn from_source(kind: Kind, error: &(dyn StdError + 'static)) -> Self {
        Self::new(kind, chain(error))
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn hint_if(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    pub(crate) fn details(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(lines);
        self
    }

    /// Changes the kind of the failure.
    pub(crate) fn with_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn details_given(&self) -> &[String] {
        &self.details
    }

    pub(crate) fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The lines to print: `error: …`, details, `hint: …`.
    pub(crate) fn lines(&self) -> Vec<(Mark, String)> {
        let mut lines = vec![(Mark::Error, hints::complete(&self.message))];
        let details = self.details.iter();
        lines.extend(details.map(|line| (Mark::Detail, hints::complete(line))));
        let hint = self
            .hint
            .iter()
            .map(|hint| (Mark::Hint, hints::complete(hint)));
        lines.extend(hint);
        lines
    }
}

/// The kind of an error line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The failure and its cause.
    Error,
    /// Evidence, such as the end of a log.
    Detail,
    /// A remedy.
    Hint,
}

/// Maps failures to exit codes.
pub(crate) fn exit_code(kind: Kind) -> ExitCode {
    ExitCode::from(kind.code())
}

impl Kind {
    /// The exit code as a number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Cluster => 3,
            Self::NotStarted => 4,
            Self::Interrupted => 130,
        }
    }
}

/// An error and its causes in one line, without duplicates.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

impl From<longshore::client::Error> for Error {
    fn from(error: longshore::client::Error) -> Self {
        use longshore::client::Error as Client;
        let result = |kind| Self::from_source(kind, &error);
        match &error {
            Client::Unreachable { .. } | Client::Timeout { .. } | Client::Closed => {
                result(Kind::Cluster)
            }
            Client::Config(_) => result(Kind::Cluster)
                .hint("leave out --context and --kubeconfig to use the embedded cluster"),
            Client::Invalid(_) | Client::Namespace(_) => result(Kind::Usage),
            _ if error.is_unauthorized() => result(Kind::Cluster).hint(
                "the cluster does not know your credentials: sign in again, or choose another --context",
            ),
            _ if error.is_forbidden() => result(Kind::Cluster).hint(
                "ask the cluster administrator for the permission (`longshore role` prints a manifest for all commands), or choose another --namespace",
            ),
            _ => result(Kind::Failed),
        }
    }
}

impl From<longshore::launcher::LaunchError> for Error {
    fn from(error: longshore::launcher::LaunchError) -> Self {
        use longshore::launcher::LaunchError as Launch;
        match error {
            Launch::Cluster(error) => error.into(),
            Launch::Plan(error) => Self::from_source(Kind::Failed, &error),
            usage @ Launch::InCode { .. } => Self::from_source(Kind::Usage, &usage),
            other => Self::from_source(Kind::NotStarted, &other),
        }
    }
}

impl From<longshore::launcher::runs::RunsError> for Error {
    fn from(error: longshore::launcher::runs::RunsError) -> Self {
        use longshore::launcher::runs::RunsError as Runs;
        match error {
            Runs::Cluster(error) => error.into(),
            ambiguous @ Runs::Ambiguous { .. } => {
                Self::from_source(Kind::Usage, &ambiguous).hint("use a longer prefix")
            }
            pattern @ Runs::Pattern { .. } => Self::from_source(Kind::Usage, &pattern)
                .hint("quote the pattern, as in 'sweep-*'; * stands for any characters, ? for one"),
            none @ Runs::NoMatch { .. } => {
                Self::from_source(Kind::Failed, &none).hint("`longshore runs` lists them")
            }
            others @ Runs::OfOthers { .. } => Self::from_source(Kind::Usage, &others).hint(
                "name a run of another user in full; commands that change it also need --all-users",
            ),
            other => Self::from_source(Kind::Failed, &other),
        }
    }
}

impl From<longshore::launcher::sweeps::SweepError> for Error {
    fn from(error: longshore::launcher::sweeps::SweepError) -> Self {
        match error {
            longshore::launcher::sweeps::SweepError::Cluster(error) => error.into(),
            other => Self::from_source(Kind::Failed, &other),
        }
    }
}

impl From<longshore::launcher::follow::Error> for Error {
    fn from(error: longshore::launcher::follow::Error) -> Self {
        match error {
            longshore::launcher::follow::Error::Cluster(error) => error.into(),
            other => Self::from_source(Kind::Cluster, &other),
        }
    }
}

impl From<longshore::launcher::runs::TaskError> for Error {
    fn from(error: longshore::launcher::runs::TaskError) -> Self {
        Self::from_source(Kind::Usage, &error)
    }
}

impl From<embedded::Error> for Error {
    fn from(error: embedded::Error) -> Self {
        let result = Self::from_source(Kind::Cluster, &error);
        match &error {
            embedded::Error::Busy(_) => {
                result.hint("`longshore status` says which; `longshore down` stops it")
            }
            embedded::Error::FolderGone(_) => result
                .hint("stop a cluster with `longshore down` before you move or remove its folder"),
            embedded::Error::Spawn { log, log_path, .. } => {
                let hint = format!("the whole log is in {}", log_path.display());
                result.details(log.iter().cloned()).hint(hint)
            }
            embedded::Error::File { .. } => {
                result.hint("choose another folder with --data-dir or LONGSHORE_DATA_DIR")
            }
            embedded::Error::Untrusted { remedy, .. } => {
                let hint = format!(
                    "{remedy}; or choose another folder with --data-dir or LONGSHORE_DATA_DIR"
                );
                result.hint(hint)
            }
            embedded::Error::AuditLog { .. } => {
                result.hint("choose another file, in an existing folder, with --audit-log")
            }
            embedded::Error::ForeignKubeconfig(_) => result.with_kind(Kind::Usage),
            embedded::Error::Stuck { dir, .. } => {
                let hint = format!("its log is {}", dir.join("cluster.log").display());
                result.hint(hint)
            }
            _ => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read x")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_cause_is_printed_once() {
        let cause = || std::io::Error::other("disk on fire");
        assert_eq!(chain(&Outer(cause())), "cannot read x: disk on fire");

        #[derive(Debug, thiserror::Error)]
        #[error("cannot read x: {0}")]
        struct Says(#[source] std::io::Error);
        assert_eq!(chain(&Says(cause())), "cannot read x: disk on fire");
    }
}
