//! The `Status` of an answer that a rule asks for, worded as the real server
//! words that error about that request.

use longshore_model::{StatusCause, StatusDetails, StatusReason};

use super::{Asked, Effect};
use crate::fault::Fault;

/// What a client is told in place of an answer.
pub(crate) fn fault(effect: &Effect, asked: &Asked<'_>) -> Option<Fault> {
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
        .map_or_else(|| usual_reason(*code), StatusReason::from_word);
    let words = message.clone().unwrap_or_else(|| words(&reason, asked));
    let details = StatusDetails {
        retry_after_seconds: retry_after_seconds.unwrap_or_default(),
        ..details(&reason, asked)
    };
    Some(Fault::injected(*code, reason, words, details))
}

/// The reason a code has when nothing else is said.
fn usual_reason(code: u16) -> StatusReason {
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

/// What the fault is blamed on, where the real server names a cause.
const CAUSE: &str = "a fault on demand";

fn words(reason: &StatusReason, asked: &Asked<'_>) -> String {
    let (plural, qualified, name) = names(asked);
    match reason.as_str() {
        "Unauthorized" => "Unauthorized".into(),
        "Forbidden" => match asked.resource {
            None => format!(
                "forbidden: User \"longshore-admin\" cannot {} path \"{}\"",
                asked.verb, asked.path
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
                    asked.verb, resource.group
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

fn details(reason: &StatusReason, asked: &Asked<'_>) -> StatusDetails {
    match (reason.as_str(), asked.resource) {
        ("InternalError", _) => StatusDetails {
            causes: vec![StatusCause {
                message: CAUSE.into(),
                ..StatusCause::default()
            }],
            ..StatusDetails::default()
        },
        ("Forbidden" | "NotFound" | "Conflict" | "AlreadyExists", Some(resource)) => {
            let (plural, _, name) = names(asked);
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

/// `jobs`, `jobs.batch`, and the object's name.
fn names(asked: &Asked<'_>) -> (String, String, String) {
    let plural = asked.plural();
    let Some(resource) = asked.resource else {
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
