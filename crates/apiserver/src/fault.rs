//! Failures of requests as `Status` objects. Engine errors bring their own;
//! those of HTTP itself are worded here, as clients know them from
//! Kubernetes.

use longshore_model::{Status, StatusCause, StatusDetails, StatusReason};

/// A request that failed: what the client is told.
#[derive(Debug)]
pub(crate) struct Fault(Box<Status>);

impl Fault {
    pub(crate) fn new(reason: StatusReason, message: impl Into<String>) -> Self {
        Self(Box::new(Status::failure(reason, message)))
    }

    /// Failures of HTTP itself carry empty details.
    fn plain(reason: StatusReason, message: impl Into<String>) -> Self {
        let mut fault = Self::new(reason, message);
        fault.0.details = Some(StatusDetails::default());
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

    pub(crate) fn wrong_method() -> Self {
        Self::plain(
            StatusReason::MethodNotAllowed,
            "the server does not allow this method on the requested resource",
        )
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
        let texts: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let joined = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut fault = Self::new(
            StatusReason::Invalid,
            format!("{kind}.meta.k8s.io \"\" is invalid: {joined}"),
        );
        fault.0.details = Some(StatusDetails {
            group: "meta.k8s.io".into(),
            kind: kind.into(),
            causes,
            ..StatusDetails::default()
        });
        fault
    }

    pub(crate) fn status(&self) -> &Status {
        &self.0
    }
}

impl From<longshore_engine::Error> for Fault {
    fn from(error: longshore_engine::Error) -> Self {
        Self(Box::new(error.status()))
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
