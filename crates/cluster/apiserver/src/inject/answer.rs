//! The `Status` of an injected error, with the message that the real server
//! uses for this error and request.

use longshore_model::{StatusCause, StatusDetails, StatusReason};

use super::{Attributes, Effect};
use crate::status_error::StatusError;

/// Returns the error that the client receives instead of the response.
pub(crate) fn status_error(effect: &Effect, attributes: &Attributes<'_>) -> Option<StatusError> {
    let Effect::Answer {
        code,
        reason,
        message,
        retry_after_seconds,
    } = effect
    else {
        return None;
    };
    let reason = reason
        .as_deref()
        .map_or_else(|| default_reason(*code), StatusReason::from_word);
    let words = message
        .clone()
        .unwrap_or_else(|| words(&reason, attributes));
    let details = StatusDetails {
        retry_after_seconds: retry_after_seconds.unwrap_or_default(),
        ..details(&reason, attributes)
    };
    Some(StatusError::injected(*code, reason, words, details))
}

/// Returns the default reason of a code.
fn default_reason(code: u16) -> StatusReason {
    StatusReason::from_word(match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    })
}

/// The cause in messages in which the real server names one.
const CAUSE: &str = "a fault on demand";

fn words(reason: &StatusReason, attributes: &Attributes<'_>) -> String {
    let (plural, qualified, name) = names(attributes);
    match reason.as_str() {
        "Unauthorized" => "Unauthorized".into(),
        "Forbidden" => match attributes.resource {
            None => format!(
                "forbidden: User \"longshore-admin\" cannot {} path \"{}\"",
                attributes.verb, attributes.path
            ),
            Some(resource) => {
                let object = if name.is_empty() {
                    qualified
                } else {
                    format!("{qualified} \"{name}\"")
                };
                let place = match &resource.namespace {
                    Some(namespace) => format!("in the namespace \"{namespace}\""),
                    None => "at the cluster scope".into(),
                };
                format!(
                    "{object} is forbidden: User \"longshore-admin\" cannot {} resource \"{plural}\" in API group \"{}\" {place}",
                    attributes.verb, resource.group
                )
            }
        },
        "NotFound" if !name.is_empty() => format!("{qualified} \"{name}\" not found"),
        "NotFound" => "the server could not find the requested resource".into(),
        "AlreadyExists" => format!("{qualified} \"{name}\" already exists"),
        "Conflict" => format!(
            "Operation cannot be fulfilled on {qualified} \"{name}\": the object has been modified; please apply your changes to the latest version and try again"
        ),
        "Expired" => "too old resource version".into(),
        "TooManyRequests" => {
            "the server has received too many requests and has asked us to try again later".into()
        }
        "InternalError" => format!("Internal error occurred: {CAUSE}"),
        "ServiceUnavailable" => "the server is currently unable to handle the request".into(),
        "Timeout" => {
            "Timeout: request did not complete within requested timeout - context deadline exceeded"
                .into()
        }
        _ => CAUSE.into(),
    }
}

fn details(reason: &StatusReason, attributes: &Attributes<'_>) -> StatusDetails {
    match (reason.as_str(), attributes.resource) {
        ("InternalError", _) => StatusDetails {
            causes: vec![StatusCause {
                message: CAUSE.into(),
                ..StatusCause::default()
            }],
            ..StatusDetails::default()
        },
        ("Forbidden" | "NotFound" | "Conflict" | "AlreadyExists", Some(resource)) => {
            let (plural, _, name) = names(attributes);
            StatusDetails {
                name,
                group: resource.group.clone(),
                kind: plural,
                ..StatusDetails::default()
            }
        }
        _ => StatusDetails::default(),
    }
}

/// Returns `jobs`, `jobs.batch`, and the object's name.
fn names(attributes: &Attributes<'_>) -> (String, String, String) {
    let plural = attributes.plural();
    let Some(resource) = attributes.resource else {
        return (plural.clone(), plural, String::new());
    };
    let qualified = if resource.group.is_empty() {
        plural.clone()
    } else {
        format!("{plural}.{}", resource.group)
    };
    let name = resource.name.clone().unwrap_or_default();
    (plural, qualified, name)
}
