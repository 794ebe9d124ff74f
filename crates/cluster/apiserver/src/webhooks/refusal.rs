//! The reasons why a webhook does not admit a request.

use longshore_engine::Error;
use longshore_model::{Status, StatusCause, StatusDetails, StatusReason};

/// A failed call, which the failure policy of the webhook can ignore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallError(pub(super) String);

impl CallError {
    /// Creates the error of a call without a response.
    pub(super) fn call(problem: impl std::fmt::Display) -> Self {
        Self(format!("failed to call webhook: {problem}"))
    }

    /// Creates the error of a call with an invalid response.
    pub(super) fn answer(problem: impl std::fmt::Display) -> Self {
        Self(format!("received invalid webhook response: {problem}"))
    }
}

/// The reason why a request is not admitted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Refusal {
    /// The webhook could not be called.
    Failed(CallError),
    /// The request is refused, regardless of the failure policy.
    Refused(Box<Status>),
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

impl Refusal {
    pub(super) fn internal(problem: impl std::fmt::Display) -> Self {
        Self::Refused(Box::new(internal(&problem.to_string())))
    }

    pub(super) fn bad_request(problem: impl Into<String>) -> Self {
        Self::Refused(Box::new(Status::failure(StatusReason::BadRequest, problem)))
    }

    /// The error of the request.
    pub(super) fn into_error(self, webhook: &str) -> Error {
        Error::Refused(match self {
            Self::Failed(CallError(problem)) => Box::new(internal(&format!(
                "failed calling webhook {webhook:?}: {problem}"
            ))),
            Self::Refused(status) => status,
        })
    }
}

/// An internal error with its cause, as in Kubernetes.
fn internal(problem: &str) -> Status {
    let message = format!("Internal error occurred: {problem}");
    let cause = StatusCause {
        message: problem.to_owned(),
        ..StatusCause::default()
    };
    Status {
        details: Some(StatusDetails {
            causes: vec![cause],
            ..StatusDetails::default()
        }),
        ..Status::failure(StatusReason::InternalError, message)
    }
}
