//! What can go wrong with a request, and the `Status` it reads as.

use longshore_model::{KindInfo, Status, StatusCause, StatusDetails, StatusReason};

/// Which resource, and which object of it, an error is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The kind's group; empty for the core group.
    pub group: Box<str>,
    /// The resource (`pods`, `pods/binding`).
    pub resource: Box<str>,
    /// The kind (`Pod`).
    pub kind: Box<str>,
    /// The object's name.
    pub name: Box<str>,
}

impl Subject {
    /// The object `name` of a kind.
    #[must_use]
    pub fn new(kind: &KindInfo, name: &str) -> Self {
        Self {
            group: (*kind.gvk.group).into(),
            resource: (*kind.plural).into(),
            kind: (*kind.gvk.kind).into(),
            name: name.into(),
        }
    }

    /// The same, about a subresource.
    #[must_use]
    pub fn subresource(mut self, name: &str) -> Self {
        self.resource = format!("{}/{name}", self.resource).into();
        self
    }

    fn qualified(&self, word: &str) -> String {
        if self.group.is_empty() {
            word.to_owned()
        } else {
            format!("{word}.{}", self.group)
        }
    }

    fn details(&self, kind: &str) -> StatusDetails {
        StatusDetails {
            name: self.name.to_string(),
            group: self.group.to_string(),
            kind: kind.to_owned(),
            ..StatusDetails::default()
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.qualified(&self.resource), self.name)
    }
}

/// Why a request was not done. Messages are worded as Kubernetes words them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such object (404).
    #[error("{0} not found")]
    NotFound(Subject),
    /// The name is taken (409).
    #[error("{0} already exists")]
    AlreadyExists(Subject),
    /// The name is taken by what is being deleted (409).
    #[error("object is being deleted: {0} already exists")]
    StillThere(Subject),
    /// Stale version, other uid, or a state that does not allow it (409).
    #[error("Operation cannot be fulfilled on {subject}: {reason}")]
    Conflict {
        /// Which object.
        subject: Subject,
        /// Why, for people.
        reason: String,
    },
    /// A configuration has other values for fields that others manage (409).
    #[error("{message}")]
    ApplyConflict {
        /// Whose fields.
        message: String,
        /// Each field.
        causes: Vec<StatusCause>,
    },
    /// A configuration or a patch that does not have the form of its type (500, without
    /// a reason, as Kubernetes has it).
    #[error("{0}")]
    Untyped(String),
    /// The object breaks the rules of its kind (422).
    #[error("{} {:?} is invalid: {}", subject.qualified(&subject.kind), subject.name, join(causes))]
    Invalid {
        /// Which object.
        subject: Subject,
        /// Each broken rule.
        causes: Vec<StatusCause>,
    },
    /// The request cannot be read (400).
    #[error("{0}")]
    BadRequest(String),
    /// Well formed, but refused (403).
    #[error("{subject} is forbidden: {reason}")]
    Forbidden {
        /// Which object.
        subject: Subject,
        /// Why, for people.
        reason: String,
        /// Why, for programs.
        causes: Vec<StatusCause>,
    },
    /// The kind is served no longer: a watch of it ends.
    #[error("the server could not find the requested resource ({})", .0.qualified(&.0.resource))]
    KindGone(Subject),
    /// The version asked for is compacted away (410).
    #[error("{message}")]
    Expired {
        /// What is too old.
        message: String,
        /// A token that goes on with the newest state, where a list expired.
        cursor: Option<String>,
    },
    /// The version asked for is not reached yet (504).
    #[error("Too large resource version: {asked}, current: {current}")]
    VersionTooLarge {
        /// The version asked for.
        asked: u64,
        /// The newest version.
        current: u64,
    },
    /// A patch of a kind that is not served (415).
    #[error("{0}")]
    UnsupportedPatch(String),
    /// A patch that does not fit the object: a failed test, a missing path (422).
    #[error("the server rejected our request due to an error in our request")]
    PatchFailed(String),
    /// The object is larger than what is stored of one (500, without a reason, as
    /// Kubernetes hands on the error of its store).
    #[error("etcdserver: request is too large")]
    ObjectTooLarge,
    /// A patch does too much (413).
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// A pod's budget does not let it go now (429).
    #[error("Cannot evict pod as it would violate the pod's disruption budget.")]
    TooManyDisruptions {
        /// Which budget, and why.
        cause: StatusCause,
        /// When to try again; 0 when nobody knows.
        seconds: u32,
    },
    /// More than one budget guards a pod (500, without a reason, as Kubernetes
    /// has it).
    #[error(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )]
    SeveralBudgets,
    /// The write could not be made durable, or the engine is closed; nothing
    /// of it was kept (500).
    #[error("{0}")]
    Storage(String),
    /// A fault of the engine itself (500).
    #[error("Internal error occurred: {0}")]
    Internal(String),
}

/// `field: message` of each cause, in brackets when there are several.
fn join(causes: &[StatusCause]) -> String {
    let one = |cause: &StatusCause| {
        if cause.field.is_empty() {
            cause.message.clone()
        } else {
            format!("{}: {}", cause.field, cause.message)
        }
    };
    match causes {
        [cause] => one(cause),
        _ => format!(
            "[{}]",
            causes.iter().map(one).collect::<Vec<_>>().join(", ")
        ),
    }
}

impl Error {
    /// The version in the request is not the object's.
    pub(crate) fn stale(subject: Subject) -> Self {
        let reason = "the object has been modified; please apply your changes to the latest version and try again";
        Self::Conflict {
            subject,
            reason: reason.to_owned(),
        }
    }

    /// The `Status` to answer.
    ///
    /// ```
    /// use longshore_engine::{Error, Subject};
    /// let pods = longshore_model::kind::builtin("", "Pod").unwrap();
    /// let status = Error::NotFound(Subject::new(pods, "x")).status();
    /// assert_eq!((status.code, status.message.as_str()), (404, "pods \"x\" not found"));
    /// ```
    #[must_use]
    pub fn status(&self) -> Status {
        let failure = |reason| Status::failure(reason, self.to_string());
        let with = |reason, details| Status {
            details: Some(details),
            ..failure(reason)
        };
        match self {
            Self::NotFound(subject) => {
                with(StatusReason::NotFound, subject.details(&subject.resource))
            }
            Self::KindGone(subject) => {
                with(StatusReason::NotFound, subject.details(&subject.resource))
            }
            Self::AlreadyExists(subject) | Self::StillThere(subject) => with(
                StatusReason::AlreadyExists,
                subject.details(&subject.resource),
            ),
            Self::Conflict { subject, .. } => {
                with(StatusReason::Conflict, subject.details(&subject.resource))
            }
            Self::ApplyConflict { causes, .. } => with(
                StatusReason::Conflict,
                StatusDetails {
                    causes: causes.clone(),
                    ..StatusDetails::default()
                },
            ),
            Self::Untyped(_) | Self::SeveralBudgets | Self::ObjectTooLarge => {
                failure(StatusReason::Unknown)
            }
            Self::TooManyDisruptions { cause, seconds } => with(
                StatusReason::TooManyRequests,
                StatusDetails {
                    causes: vec![cause.clone()],
                    retry_after_seconds: *seconds,
                    ..StatusDetails::default()
                },
            ),
            Self::Invalid { subject, causes } => with(
                StatusReason::Invalid,
                StatusDetails {
                    causes: causes.clone(),
                    ..subject.details(&subject.kind)
                },
            ),
            Self::Forbidden {
                subject, causes, ..
            } => with(
                StatusReason::Forbidden,
                StatusDetails {
                    causes: causes.clone(),
                    ..subject.details(&subject.resource)
                },
            ),
            Self::BadRequest(_) => failure(StatusReason::BadRequest),
            Self::Expired { cursor, .. } => {
                let mut status = failure(StatusReason::Expired);
                if let Some(cursor) = cursor {
                    status
                        .metadata
                        .insert("continue".into(), cursor.as_str().into());
                }
                status
            }
            Self::VersionTooLarge { .. } => with(
                StatusReason::Timeout,
                StatusDetails {
                    causes: vec![StatusCause {
                        reason: "ResourceVersionTooLarge".into(),
                        message: "Too large resource version".into(),
                        field: String::new(),
                    }],
                    retry_after_seconds: 1,
                    ..StatusDetails::default()
                },
            ),
            Self::UnsupportedPatch(_) => failure(StatusReason::UnsupportedMediaType),
            // Kubernetes does not say what in the patch it was.
            Self::PatchFailed(_) => with(StatusReason::Invalid, StatusDetails::default()),
            Self::TooLarge(_) => failure(StatusReason::RequestEntityTooLarge),
            Self::Storage(_) | Self::Internal(_) => failure(StatusReason::InternalError),
        }
    }
}

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the file open.
    #[error(
        "the store {path} is in use by another process: stop it, or choose another data directory"
    )]
    InUse {
        /// The file.
        path: std::path::PathBuf,
    },
    /// The file is of another format version.
    #[error(
        "the store {path} has format {found}, this program reads format {expected}: use the program that wrote it, or another data directory"
    )]
    Format {
        /// The file.
        path: std::path::PathBuf,
        /// The version found.
        found: u64,
        /// The version understood.
        expected: u64,
    },
    /// The file cannot be read or written.
    #[error("cannot open the store {path}: {problem}")]
    Storage {
        /// The file.
        path: std::path::PathBuf,
        /// What the storage says.
        problem: String,
    },
    /// An object in the file cannot be read.
    #[error("the store holds an object that cannot be read ({key}): {problem}")]
    Corrupt {
        /// Kind and key of the object.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The writer's thread cannot be started.
    #[error("cannot start the writer: {0}")]
    Thread(std::io::Error),
}
