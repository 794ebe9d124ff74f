//! The errors of requests and their `Status` objects.

use longshore_model::{KindInfo, Status, StatusCause, StatusDetails, StatusReason};

/// The resource and the object that an error is about.
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
    /// Creates a subject for the object `name` of a kind.
    #[must_use]
    pub fn new(kind: &KindInfo, name: &str) -> Self {
        Self {
            group: (*kind.gvk.group).into(),
            resource: (*kind.plural).into(),
            kind: (*kind.gvk.kind).into(),
            name: name.into(),
        }
    }

    /// Returns the same subject with a subresource.
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

/// The reason why a request failed. The messages equal Kubernetes'.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The object does not exist (404).
    #[error("{0} not found")]
    NotFound(Subject),
    /// An object with this name exists (409).
    #[error("{0} already exists")]
    AlreadyExists(Subject),
    /// An object with this name exists and is being deleted (409).
    #[error("object is being deleted: {0} already exists")]
    StillThere(Subject),
    /// The resource version or uid does not match, or the object's state does
    /// not allow the operation (409).
    #[error("Operation cannot be fulfilled on {subject}: {reason}")]
    Conflict {
        /// The object.
        subject: Subject,
        /// A reason for users.
        reason: String,
    },
    /// An applied configuration conflicts with fields of other managers (409).
    #[error("{message}")]
    ApplyConflict {
        /// The conflicting managers and fields.
        message: String,
        /// A cause for each field.
        causes: Vec<StatusCause>,
    },
    /// An applied configuration or a patch does not match the schema (500
    /// without a reason, as in Kubernetes).
    #[error("{0}")]
    Untyped(String),
    /// The object is invalid (422).
    #[error("{} {:?} is invalid: {}", subject.qualified(&subject.kind), subject.name, join(causes))]
    Invalid {
        /// The object.
        subject: Subject,
        /// A cause for each violated rule.
        causes: Vec<StatusCause>,
    },
    /// The request is malformed (400).
    #[error("{0}")]
    BadRequest(String),
    /// The request is well formed but forbidden (403).
    #[error("{subject} is forbidden: {reason}")]
    Forbidden {
        /// The object.
        subject: Subject,
        /// A reason for users.
        reason: String,
        /// Machine-readable reasons.
        causes: Vec<StatusCause>,
    },
    /// The kind is no longer served: watches of it end.
    #[error("the server could not find the requested resource ({})", .0.qualified(&.0.resource))]
    KindGone(Subject),
    /// The requested revision is compacted (410).
    #[error("{message}")]
    Expired {
        /// The revision or token that is too old.
        message: String,
        /// A token that continues an expired list at the newest revision.
        cursor: Option<String>,
    },
    /// The requested revision does not exist yet (504).
    #[error("Too large resource version: {asked}, current: {current}")]
    VersionTooLarge {
        /// The requested revision.
        asked: u64,
        /// The newest revision.
        current: u64,
    },
    /// A patch type that is not supported (415).
    #[error("{0}")]
    UnsupportedPatch(String),
    /// A patch cannot be applied to the object: a failed test, a missing path
    /// (422).
    #[error("the server rejected our request due to an error in our request")]
    PatchFailed(String),
    /// The object exceeds the size limit of the store (500 without a reason, as
    /// Kubernetes returns the error of etcd).
    #[error("etcdserver: request is too large")]
    ObjectTooLarge,
    /// A patch has too many operations or too large a result (413).
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// The pod's disruption budget does not allow the eviction now (429).
    #[error("Cannot evict pod as it would violate the pod's disruption budget.")]
    TooManyDisruptions {
        /// The budget and the reason.
        cause: StatusCause,
        /// Seconds after which to retry; 0 if unknown.
        seconds: u32,
    },
    /// More than one budget selects the pod (500 without a reason, as in
    /// Kubernetes).
    #[error(
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )]
    SeveralBudgets,
    /// Admission outside of the engine refused the write: the `Status` of the
    /// response.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    /// The store has no space for the write. No change was made; the request can be repeated (507).
    #[error("{0}")]
    StorageFull(String),
    /// The write could not be made durable, or the engine is closed. No change was made (500).
    #[error("{0}")]
    Storage(String),
    /// An internal error of the engine (500).
    #[error("Internal error occurred: {0}")]
    Internal(String),
}

/// Formats causes as `field: message`, in brackets if there are several.
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
    /// The resource version in the request is not the object's current one.
    pub(crate) fn stale(subject: Subject) -> Self {
        let reason = "the object has been modified; please apply your changes to the latest version and try again";
        Self::Conflict {
            subject,
            reason: reason.to_owned(),
        }
    }

    /// The `Status` of the response.
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
            // Kubernetes does not report which part of the patch failed.
            Self::PatchFailed(_) => with(StatusReason::Invalid, StatusDetails::default()),
            Self::TooLarge(_) => failure(StatusReason::RequestEntityTooLarge),
            Self::Refused(status) => Status::clone(status),
            Self::StorageFull(_) => Status {
                code: 507,
                ..with(
                    StatusReason::Other("InsufficientStorage".into()),
                    StatusDetails {
                        retry_after_seconds: 1,
                        ..StatusDetails::default()
                    },
                )
            },
            Self::Storage(_) | Self::Internal(_) => failure(StatusReason::InternalError),
        }
    }
}

/// The reason why the store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the file open.
    #[error(
        "the store {path} is in use by another process: stop it, or choose another data folder"
    )]
    InUse {
        /// The file.
        path: std::path::PathBuf,
    },
    /// The file has another format version.
    #[error(
        "the store {path} has format {found}, this program reads format {expected}: use the program that wrote it, or another data folder"
    )]
    Format {
        /// The file.
        path: std::path::PathBuf,
        /// The version of the file.
        found: u64,
        /// The version that this program reads.
        expected: u64,
    },
    /// The file cannot be read or written.
    #[error("cannot open the store {path}: {problem}")]
    Storage {
        /// The file.
        path: std::path::PathBuf,
        /// The error of the storage layer.
        problem: String,
    },
    /// An object in the file cannot be decoded.
    #[error("the store holds an object that cannot be read ({key}): {problem}")]
    Corrupt {
        /// Kind and key of the object.
        key: String,
        /// The decoding error.
        problem: String,
    },
    /// The writer thread cannot be started.
    #[error("cannot start the writer: {0}")]
    Thread(std::io::Error),
}
