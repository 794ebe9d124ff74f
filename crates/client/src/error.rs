//! What can go wrong, said so that a person knows what to do.

use std::time::Duration;

use longshore_model::{Status, StatusReason};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation. Its text names the request, the server's message and
/// the code; never a token, a password or the data of a Secret.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused the request.
    #[error("{request}: {} ({})", .status.message, code_and_reason(.status))]
    Api {
        /// Method and path.
        request: String,
        /// The server's answer.
        status: Box<Status>,
    },
    /// The server does not have what was asked for.
    #[error("{request}: {} ({})", .status.message, code_and_reason(.status))]
    NotFound {
        /// Method and path.
        request: String,
        /// The server's answer.
        status: Box<Status>,
    },
    /// A namespace is missing, contradicts another, or is not allowed.
    #[error("{0}")]
    Namespace(String),
    /// A status field is absent: the object has not come that far, or its
    /// server does not set it.
    #[error("{kind} {name} has no {field}")]
    Status {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// Dotted path of the field.
        field: String,
    },
    /// No answer from the cluster.
    #[error(
        "cannot reach the cluster at {url}: {problem}; check that it runs and that the kubeconfig's context is the one you mean"
    )]
    Unreachable {
        /// Where the cluster should be.
        url: String,
        /// Why, in words.
        problem: String,
    },
    /// Time ran out.
    #[error("timed out after {after:?} {waiting_for}{}", last_seen(.last))]
    Timeout {
        /// What was awaited: "waiting for …".
        waiting_for: String,
        /// How long.
        after: Duration,
        /// The last state seen; empty when none.
        last: String,
    },
    /// The [`Cluster`](crate::Cluster) or watch was closed.
    #[error("the connection to the cluster is closed: make a new Cluster")]
    Closed,
    /// An argument was refused before any request.
    #[error("{0}")]
    Invalid(String),
    /// An answer, or a part of one, is not what the API promises.
    #[error("{what} cannot be read: {problem}")]
    Decode {
        /// What was being read.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Files could not be copied into a container or out of it.
    #[error("cannot copy {what}: {problem}")]
    Copy {
        /// What was to be copied, and where to.
        what: String,
        /// Why it was not.
        problem: String,
    },
    /// The configuration does not lead to a cluster.
    #[error("{0}")]
    Config(String),
}

/// A field that an apply wanted and another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The field, as `.data.colour`.
    pub field: String,
    /// Who owns it.
    pub manager: String,
}

fn code_and_reason(status: &Status) -> String {
    match status.reason.as_str() {
        "" => status.code.to_string(),
        reason => format!("{} {reason}", status.code),
    }
}

fn last_seen(last: &str) -> String {
    if last.is_empty() {
        String::new()
    } else {
        format!("; last seen: {last}")
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::Cluster;
/// use serde_json::json;
/// let maps = cluster.configmaps().in_namespace("default")?;
/// let error = maps.fetch("a").await.unwrap_err();
/// assert!(error.is_not_found());
/// assert_eq!(error.code(), Some(404));
/// assert_eq!(error.status().unwrap().message, "configmaps \"a\" not found");
///
/// let map = json!({"metadata": {"name": "a"}});
/// maps.create(&map).await?;
/// assert!(maps.create(&map).await.unwrap_err().is_already_exists());
/// let stale = json!({"metadata": {"resourceVersion": "1"}});
/// assert!(maps.replace("a", &stale).await.unwrap_err().is_conflict());
///
/// let absent = Cluster::from_url("http://localhost:1")?;
/// let error = absent.nodes().list().await.unwrap_err();
/// assert!(error.is_unreachable() && error.reason().is_none());
/// # Ok(()) });
/// ```
///
/// Refusals that have nothing to do with the object:
///
/// ```
/// # longshore_embedded::example(async |_| {
/// use std::time::Duration;
/// use longshore_client::Cluster;
/// # use http::{Request, Response};
/// # use http_body_util::Full;
/// # use kube_client::client::Body;
/// # let refusing = |code: u16, reason: &'static str| {
/// #     let service = tower::service_fn(move |_: Request<Body>| async move {
/// #         let status = serde_json::json!({
/// #             "kind": "Status", "apiVersion": "v1", "status": "Failure",
/// #             "code": code, "reason": reason, "message": "no",
/// #             "details": {"retryAfterSeconds": 90},
/// #         });
/// #         let response = Response::builder().status(code).header("retry-after", "90");
/// #         response.body(Full::<bytes::Bytes>::from(status.to_string()))
/// #     });
/// #     Cluster::from_service(service, "default").nodes()
/// # };
/// let error = refusing(401, "Unauthorized").list().await.unwrap_err();
/// assert!(error.is_unauthorized());
/// let error = refusing(403, "Forbidden").list().await.unwrap_err();
/// assert!(error.is_forbidden());
/// let error = refusing(410, "Expired").fetch("a").await.unwrap_err();
/// assert!(error.is_gone());
/// let error = refusing(429, "TooManyRequests").list().await.unwrap_err();
/// assert!(error.is_too_many_requests());
/// assert_eq!(error.retry_after(), Some(Duration::from_secs(90)));
/// # Ok(()) });
/// ```
impl Error {
    pub(crate) fn from_status(request: String, status: Status) -> Self {
        let status = Box::new(status);
        if status.code == 404 {
            Self::NotFound { request, status }
        } else {
            Self::Api { request, status }
        }
    }

    pub(crate) fn decode(what: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Self::Decode {
            what: what.into(),
            problem: problem.to_string(),
        }
    }

    /// The server's answer, if it gave one.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api { status, .. } | Self::NotFound { status, .. } => Some(status),
            _ => None,
        }
    }

    /// The HTTP code, if the server answered.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// The server's machine-readable reason, if it answered.
    #[must_use]
    pub fn reason(&self) -> Option<&StatusReason> {
        self.status().map(|status| &status.reason)
    }

    /// How long the server asks to wait before the next try.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// Whether the object, or its kind, is not there (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Whether another client changed the object first (409 `Conflict`).
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409) && !self.is_already_exists()
    }

    /// Whether an object of that name is there already (409 `AlreadyExists`).
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.reason() == Some(&StatusReason::AlreadyExists)
    }

    /// Whether the version asked for is no longer kept (410).
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.code() == Some(410)
            || matches!(
                self.reason(),
                Some(StatusReason::Gone | StatusReason::Expired)
            )
    }

    /// Whether the server refuses for now (429): too much is asked of it, or a
    /// PodDisruptionBudget is used up.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == Some(429)
    }

    /// The fields that other managers own, when a server-side apply is refused
    /// for them: apply with force to take them over, or leave them out.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use serde_json::json;
    /// let maps = cluster.configmaps().in_namespace("default")?;
    /// let map = |colour| json!({"metadata": {"name": "settings"}, "data": {"colour": colour}});
    /// maps.apply(&map("blue"), "owner", false).await?;
    /// let error = maps.apply(&map("red"), "painter", false).await.unwrap_err();
    /// let conflict = &error.conflicts()[0];
    /// assert_eq!((&*conflict.field, &*conflict.manager), (".data.colour", "owner"));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn conflicts(&self) -> Vec<Conflict> {
        let details = self.status().and_then(|status| status.details.as_ref());
        let causes = details.into_iter().flat_map(|details| &details.causes);
        causes
            .filter(|cause| cause.reason == "FieldManagerConflict")
            .map(|cause| Conflict {
                field: cause.field.clone(),
                // The server says: conflict with "name" using v1 at …
                manager: cause
                    .message
                    .split('"')
                    .nth(1)
                    .unwrap_or(&cause.message)
                    .to_owned(),
            })
            .collect()
    }

    /// Whether the server does not know who asks (401).
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    /// Whether the server does not allow it (403).
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Whether the cluster did not answer at all.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Whether time ran out.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }
}

impl From<longshore_model::SelectorError> for Error {
    fn from(error: longshore_model::SelectorError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<longshore_model::name::NameError> for Error {
    fn from(error: longshore_model::name::NameError) -> Self {
        Self::Invalid(error.to_string())
    }
}
