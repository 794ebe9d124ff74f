//! The error type of this crate.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use longshore_model::{Status, StatusReason};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of an operation. The message contains the request, the server's message and the status
/// code. It never contains a token, a password or the data of a Secret.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server returned an error.
    #[error("{request}: {} ({})", .status.message, code_and_reason(.status))]
    Api {
        /// The method and the path.
        request: String,
        /// The status in the response.
        status: Box<Status>,
        /// The response, if the error is from a response to a request.
        response: Option<Arc<ErrorResponse>>,
    },
    /// The object or the kind does not exist (404).
    #[error("{request}: {} ({})", .status.message, code_and_reason(.status))]
    NotFound {
        /// The method and the path.
        request: String,
        /// The status in the response.
        status: Box<Status>,
        /// The response, if the error is from a response to a request.
        response: Option<Arc<ErrorResponse>>,
    },
    /// A namespace is missing, invalid or not allowed, or contradicts another one.
    #[error("{0}")]
    Namespace(String),
    /// A field of the status is absent: a controller has not set it yet, or the cluster does
    /// not set it.
    #[error("{kind} {name} has no {field}")]
    Status {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
        /// The path of the field, with dots.
        field: String,
    },
    /// The server did not respond, or the connection was lost.
    #[error(
        "cannot reach the cluster at {url}: {problem}; check that it runs and that the context of the kubeconfig is the correct one"
    )]
    Unreachable {
        /// The URL of the cluster.
        url: String,
        /// The reason.
        problem: String,
    },
    /// A wait ended before its condition was met.
    #[error("timed out after {after:?} {waiting_for}{}", last_seen(.last))]
    Timeout {
        /// The condition, as "waiting for …".
        waiting_for: String,
        /// The timeout.
        after: Duration,
        /// The last observed state; empty if it is unknown.
        last: String,
    },
    /// The [`Cluster`](crate::Cluster) or the watch is closed.
    #[error("the connection to the cluster is closed: create a new Cluster")]
    Closed,
    /// An argument is invalid. No request was sent.
    #[error("{0}")]
    Invalid(String),
    /// A response, or a part of it, does not conform to the API.
    #[error("{what} cannot be read: {problem}")]
    Decode {
        /// The response or its part.
        what: String,
        /// The problem.
        problem: String,
    },
    /// Files could not be copied into or out of a container.
    #[error("cannot copy {what}: {problem}")]
    Copy {
        /// The source and the destination.
        what: String,
        /// The reason.
        problem: String,
    },
    /// The kubeconfig, its credentials or the environment is invalid.
    #[error("{0}")]
    Config(String),
}

/// The HTTP response of an [`Error`], for callers that need more than its [`Status`].
#[derive(Clone, PartialEq, Eq)]
pub struct ErrorResponse {
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ErrorResponse {
    /// The URL of the request, without its query.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The headers whose values are text, with lowercase names.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.headers.iter();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// The body as the server sent it: usually the JSON of a [`Status`].
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Shows neither headers nor the body.
impl fmt::Debug for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorResponse")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// A field that a server-side apply would change and that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The path of the field, such as `.data.colour`.
    pub field: String,
    /// The owner of the field.
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
/// Errors that do not depend on the object:
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
/// assert!(error.is_expired());
/// let error = refusing(429, "TooManyRequests").list().await.unwrap_err();
/// assert!(error.is_too_many_requests());
/// assert_eq!(error.retry_after(), Some(Duration::from_secs(90)));
/// # Ok(()) });
/// ```
impl From<longshore_snapshots::Unreadable> for Error {
    fn from(error: longshore_snapshots::Unreadable) -> Self {
        Self::Decode {
            what: error.what,
            problem: error.problem,
        }
    }
}

impl Error {
    pub(crate) fn from_status(request: String, status: Status) -> Self {
        Self::of_response(request, status, None)
    }

    pub(crate) fn of_response(
        request: String,
        status: Status,
        response: Option<Arc<ErrorResponse>>,
    ) -> Self {
        let status = Box::new(status);
        if status.code == 404 {
            Self::NotFound {
                request,
                status,
                response,
            }
        } else {
            Self::Api {
                request,
                status,
                response,
            }
        }
    }

    pub(crate) fn decode(what: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Self::Decode {
            what: what.into(),
            problem: problem.to_string(),
        }
    }

    /// The status that the server returned, if it responded.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api { status, .. } | Self::NotFound { status, .. } => Some(status),
            _ => None,
        }
    }

    /// The HTTP response, if the error is from a response to a request.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let error = cluster.namespaces().fetch("nothing").await.unwrap_err();
    /// let response = error.response().unwrap();
    /// assert!(response.url().ends_with("/api/v1/namespaces/nothing"));
    /// assert!(response.headers().any(|(name, value)| (name, value) == ("content-type", "application/json")));
    /// assert!(String::from_utf8_lossy(response.body()).contains("NotFound"));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn response(&self) -> Option<&ErrorResponse> {
        match self {
            Self::Api { response, .. } | Self::NotFound { response, .. } => response.as_deref(),
            _ => None,
        }
    }

    /// The HTTP status code, if the server responded.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// The machine-readable reason of the status, if the server responded.
    #[must_use]
    pub fn reason(&self) -> Option<&StatusReason> {
        self.status().map(|status| &status.reason)
    }

    /// The delay before a retry, as requested by the server.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// Returns true if the object or its kind does not exist (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Returns true if the request conflicts with a change by another client (409 `Conflict`).
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409) && !self.is_already_exists()
    }

    /// Returns true if an object with this name already exists (409 `AlreadyExists`).
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.reason() == Some(&StatusReason::AlreadyExists)
    }

    /// Returns true if the resource version or the `continue` token has expired (410).
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
            || matches!(
                self.reason(),
                Some(StatusReason::Gone | StatusReason::Expired)
            )
    }

    /// Returns true if the server rejects the request for now (429): it is overloaded, or a
    /// PodDisruptionBudget allows no eviction.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == Some(429)
    }

    /// The fields with conflicts of a server-side apply. Apply with force to become their
    /// manager, or omit them from the configuration.
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
                // The format is: conflict with "MANAGER" using v1 at …
                manager: cause
                    .message
                    .split('"')
                    .nth(1)
                    .unwrap_or(&cause.message)
                    .to_owned(),
            })
            .collect()
    }

    /// Returns true if the credentials are missing, invalid or expired (401).
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    /// Returns true if the user is not permitted to send this request (403).
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Returns true if the server did not respond, or the connection was lost.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Returns true if a wait has timed out.
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
