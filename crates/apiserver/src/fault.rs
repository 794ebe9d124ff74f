//! Failures of requests as `Status` objects. Engine errors bring their own;
//! those of HTTP itself are worded here, as clients know them from
//! Kubernetes.

use longshore_model::{Status, StatusCause, StatusDetails, StatusReason};

/// A request that failed: what the client is told.
#[derive(Debug)]
pub(crate) struct Fault {
    status: Box<Status>,
    /// The `Allow` header, of 405.
    allow: Option<String>,
}

impl Fault {
    pub(crate) fn new(reason: StatusReason, message: impl Into<String>) -> Self {
        Status::failure(reason, message).into()
    }

    /// Failures of HTTP itself carry empty details.
    fn plain(reason: StatusReason, message: impl Into<String>) -> Self {
        let mut fault = Self::new(reason, message);
        fault.status.details = Some(StatusDetails::default());
        fault
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

    /// The path has other methods than this one.
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

    /// A request that has to wait for others; its client is asked to try again.
    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        let mut fault = Self::new(StatusReason::TooManyRequests, message);
        fault.status.details = Some(StatusDetails {
            retry_after_seconds: 1,
            ..StatusDetails::default()
        });
        fault
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

    /// Options that break a rule: 422 with causes, `kind` as `ListOptions`.
    pub(crate) fn invalid_options(kind: &str, causes: Vec<StatusCause>) -> Self {
        Self::invalid(
            &format!("{kind}.meta.k8s.io"),
            kind,
            "meta.k8s.io",
            "",
            causes,
        )
    }

    /// Options for the log of a pod that break a rule.
    pub(crate) fn invalid_log_options(pod: &str, causes: Vec<StatusCause>) -> Self {
        Self::invalid("PodLogOptions", "PodLogOptions", "", pod, causes)
    }

    /// A review or a request for a token that breaks a rule.
    pub(crate) fn invalid_review(
        kind: &str,
        group: &str,
        name: &str,
        causes: Vec<StatusCause>,
    ) -> Self {
        Self::invalid(&format!("{kind}.{group}"), kind, group, name, causes)
    }

    fn invalid(shown: &str, kind: &str, group: &str, name: &str, causes: Vec<StatusCause>) -> Self {
        let texts: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let joined = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{shown} {name:?} is invalid: {joined}");
        let mut fault = Self::new(StatusReason::Invalid, message);
        fault.status.details = Some(StatusDetails {
            group: group.into(),
            kind: kind.into(),
            name: name.into(),
            causes,
            ..StatusDetails::default()
        });
        fault
    }

    /// A request that took longer than it may.
    pub(crate) fn timeout() -> Self {
        Self::plain(
            StatusReason::Timeout,
            "Timeout: request did not complete within requested timeout - context deadline exceeded",
        )
    }

    /// A failure that a rule asks for.
    pub(crate) fn injected(
        code: u16,
        reason: StatusReason,
        message: String,
        details: StatusDetails,
    ) -> Self {
        let mut fault = Self::new(reason, message);
        fault.status.code = code;
        fault.status.details = Some(details);
        fault
    }

    pub(crate) fn set_details(&mut self, details: StatusDetails) {
        self.status.details = Some(details);
    }

    pub(crate) fn status(&self) -> &Status {
        &self.status
    }
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        Self {
            status: Box::new(status),
            allow: None,
        }
    }
}

impl From<longshore_engine::Error> for Fault {
    fn from(error: longshore_engine::Error) -> Self {
        error.status().into()
    }
}

/// A cause: `field` may not be used this way.
pub(crate) fn forbidden(field: &str, why: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueForbidden".into(),
        message: format!("Forbidden: {why}"),
        field: field.into(),
    }
}

/// A cause: `field` must be given.
pub(crate) fn required(field: &str, why: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueRequired".into(),
        message: format!("Required value: {why}"),
        field: field.into(),
    }
}

/// A cause: `value` is wrong for `field`.
pub(crate) fn invalid(field: &str, value: impl std::fmt::Debug, why: &str) -> StatusCause {
    StatusCause {
        reason: "FieldValueInvalid".into(),
        message: format!("Invalid value: {value:?}: {why}"),
        field: field.into(),
    }
}

/// A cause: `value` is none of those `field` may have.
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

/// A cause: `field` is longer than this many bytes.
pub(crate) fn too_long(field: &str, limit: usize) -> StatusCause {
    StatusCause {
        reason: "FieldValueTooLong".into(),
        message: format!("Too long: may not be more than {limit} bytes"),
        field: field.into(),
    }
}
