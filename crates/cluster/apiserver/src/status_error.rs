//! Request failures as `Status` objects. Engine errors have a `Status`; errors of HTTP itself get
//! the messages that clients know from Kubernetes.

use longshore_model::{
    CauseList, MAX_PROBLEM_BYTES, MAX_TEXT_BYTES, Status, StatusCause, StatusDetails, StatusReason,
    shorten,
};

/// A failed request, with the `Status` that the client receives.
#[derive(Debug)]
pub(crate) struct StatusError {
    status: Box<Status>,
    /// The `Allow` header of a 405 response.
    allow: Option<String>,
    /// The warnings to add to the response.
    warnings: Vec<String>,
}

impl StatusError {
    pub(crate) fn new(reason: StatusReason, message: impl Into<String>) -> Self {
        Status::failure(reason, message).into()
    }

    /// An HTTP-level error; these have empty details.
    fn plain(reason: StatusReason, message: impl Into<String>) -> Self {
        let mut error = Self::new(reason, message);
        error.status.details = Some(StatusDetails::default());
        error
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusReason::BadRequest, message)
    }

    pub(crate) fn unknown_path() -> Self {
        Self::plain(
            StatusReason::NotFound,
            "the server could not find the requested resource",
        )
    }

    /// 405: the path supports other methods.
    pub(crate) fn wrong_method(allow: &[&str]) -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self {
            allow: Some(allow.join(", ")),
            ..Self::plain(StatusReason::MethodNotAllowed, message)
        }
    }

    pub(crate) fn allow(&self) -> Option<&str> {
        self.allow.as_deref()
    }

    pub(crate) fn not_acceptable() -> Self {
        Self::new(
            StatusReason::NotAcceptable,
            "only the following media types are accepted: application/json, application/yaml",
        )
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            StatusReason::UnsupportedMediaType,
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(
            StatusReason::RequestEntityTooLarge,
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// 429: the request has to wait for others; the client should retry.
    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        let mut error = Self::new(StatusReason::TooManyRequests, message);
        error.status.details = Some(StatusDetails {
            retry_after_seconds: 1,
            ..StatusDetails::default()
        });
        error
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusReason::Unauthorized, "Unauthorized")
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(
            StatusReason::InternalError,
            format!("Internal error occurred: {message}"),
        )
    }

    /// 422: options violate a rule. `kind` is for example `ListOptions`.
    pub(crate) fn invalid_options(kind: &str, causes: Vec<StatusCause>) -> Self {
        Self::invalid(
            &format!("{kind}.meta.k8s.io"),
            kind,
            "meta.k8s.io",
            "",
            causes,
        )
    }

    /// 422: options of a pod's log violate a rule.
    pub(crate) fn invalid_log_options(pod: &str, causes: Vec<StatusCause>) -> Self {
        Self::invalid("PodLogOptions", "PodLogOptions", "", pod, causes)
    }

    /// 422: a review or token request violates a rule.
    pub(crate) fn invalid_review(
        kind: &str,
        group: &str,
        name: &str,
        causes: Vec<StatusCause>,
    ) -> Self {
        Self::invalid(&format!("{kind}.{group}"), kind, group, name, causes)
    }

    fn invalid(shown: &str, kind: &str, group: &str, name: &str, causes: Vec<StatusCause>) -> Self {
        let causes = causes.into_iter().collect::<CauseList>().into_vec();
        let texts: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let joined = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{shown} {name:?} is invalid: {joined}");
        let mut error = Self::new(StatusReason::Invalid, message);
        error.status.details = Some(StatusDetails {
            group: group.into(),
            kind: kind.into(),
            name: name.into(),
            causes,
            ..StatusDetails::default()
        });
        error
    }

    /// The request exceeded its time limit.
    pub(crate) fn timeout() -> Self {
        Self::plain(
            StatusReason::Timeout,
            "Timeout: request did not complete within requested timeout - context deadline exceeded",
        )
    }

    /// An error response that a fault injection rule requests.
    pub(crate) fn injected(
        code: u16,
        reason: StatusReason,
        message: String,
        details: StatusDetails,
    ) -> Self {
        let mut error = Self::new(reason, message);
        error.status.code = code;
        error.status.details = Some(details);
        error
    }

    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn set_warnings(&mut self, warnings: Vec<String>) {
        self.warnings = warnings;
    }

    pub(crate) fn set_details(&mut self, details: StatusDetails) {
        self.status.details = Some(details);
    }

    pub(crate) fn status(&self) -> &Status {
        &self.status
    }
}

impl From<StatusError> for longshore_engine::Error {
    fn from(error: StatusError) -> Self {
        Self::Refused(error.status)
    }
}

impl From<Status> for StatusError {
    /// Shortens long messages of a status, which may repeat the request.
    fn from(mut status: Status) -> Self {
        shorten(&mut status.message, MAX_PROBLEM_BYTES);
        if let Some(details) = &mut status.details {
            shorten(&mut details.name, MAX_TEXT_BYTES);
            shorten(&mut details.kind, MAX_TEXT_BYTES);
            let causes = std::mem::take(&mut details.causes);
            details.causes = causes.into_iter().collect::<CauseList>().into_vec();
        }
        Self {
            status: Box::new(status),
            allow: None,
            warnings: Vec::new(),
        }
    }
}

impl From<longshore_engine::Error> for StatusError {
    fn from(error: longshore_engine::Error) -> Self {
        error.status().into()
    }
}

/// Creates the cause that `field` may not be used this way.
pub(crate) fn forbidden(field: &str, why: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueForbidden".into(),
        message: format!("Forbidden: {why}"),
        field: field.into(),
    }
}

/// Creates the cause that `field` is required.
pub(crate) fn required(field: &str, why: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueRequired".into(),
        message: format!("Required value: {why}"),
        field: field.into(),
    }
}

/// Creates the cause that `value` is invalid for `field`.
pub(crate) fn invalid(field: &str, value: impl std::fmt::Debug, why: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueInvalid".into(),
        message: format!("Invalid value: {value:?}: {why}"),
        field: field.into(),
    }
}

/// Creates the cause that `value` is not among the supported values of `field`.
pub(crate) fn not_supported(field: &str, value: &str, supported: &[&str]) -> StatusCause {
    let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    StatusCause {
        reason: "FieldValueNotSupported".into(),
        message: format!(
            "Unsupported value: {value:?}: supported values: {}",
            supported.join(", ")
        ),
        field: field.into(),
    }
}

/// Creates the cause that `field` is longer than `limit` bytes.
pub(crate) fn too_long(field: &str, limit: usize) -> StatusCause {
    StatusCause {
        reason: "FieldValueTooLong".into(),
        message: format!("Too long: may not be more than {limit} bytes"),
        field: field.into(),
    }
}
