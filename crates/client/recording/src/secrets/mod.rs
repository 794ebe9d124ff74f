//! Replaces secrets in bodies by a marker, before anything is written. Pure.

mod text;

use crate::{json::Json, resource::Sensitivity};
pub(crate) use text::{contains_token, redact_text};

/// The replacement for a secret. It is valid base64, so that clients can decode the data of a
/// replayed Secret.
pub const MARKER: &str = "REDACTED";

/// The annotation in which `kubectl apply` keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields with names and identifiers, which may look like a bootstrap token.
const NAMES: &[&str] = &["name", "generateName", "uid", "resourceVersion"];

/// Replaces all secrets in a body. `sensitivity` is derived from the request's path. It covers
/// patches and objects without a kind, such as the items of a list.
pub(crate) fn redact(body: &mut Json, sensitivity: Sensitivity) {
    match sensitivity {
        Sensitivity::Secret => {
            if let Json::List(operations) = body {
                operations.iter_mut().for_each(redact_operation);
            }
            redact_all(body);
        }
        Sensitivity::Token => redact_token(body),
        Sensitivity::None => {}
    }
    walk(body);
}

/// Redacts every object in a body with Secrets: also the items of lists, the objects of events,
/// and the metadata in the rows of tables.
fn redact_all(json: &mut Json) {
    match json {
        Json::Object(_) => {
            redact_secret(json);
            if let Json::Object(fields) = json {
                fields.iter_mut().for_each(|(_, value)| redact_all(value));
            }
        }
        Json::List(items) => items.iter_mut().for_each(redact_all),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {}
    }
}

/// Redacts objects by their kind, wherever they are, and texts by their form.
fn walk(json: &mut Json) {
    let is = |kinds: [&str; 2]| {
        let mut found = json.all("kind").filter_map(Json::as_text);
        found.any(|kind| kinds.contains(&kind))
    };
    match (
        is(["Secret", "SecretList"]),
        is(["TokenRequest", "TokenReview"]),
    ) {
        (true, _) => redact_secret(json),
        (false, true) => redact_token(json),
        (false, false) => {}
    }
    match json {
        Json::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Json::Text(text)
                        if NAMES.contains(&name.as_str()) && !contains_token(text.as_bytes()) => {}
                    value => walk(value),
                }
            }
        }
        Json::List(items) => items.iter_mut().for_each(walk),
        Json::Text(text) => {
            if is_copy_of_secret(text) {
                MARKER.clone_into(text);
            } else if let Some(redacted) = redact_text(text) {
                *text = redacted;
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Returns true if a text is the JSON of a Secret, as the annotation of `kubectl apply`.
fn is_copy_of_secret(text: &str) -> bool {
    text.starts_with('{')
        && text.contains("Secret")
        && serde_json::from_str(text).is_ok_and(|json: Json| {
            let mut kinds = json.all("kind").filter_map(Json::as_text);
            kinds.any(|kind| kind == "Secret")
        })
}

fn marker() -> Json {
    Json::Text(MARKER.to_owned())
}

/// Redacts a Secret, a patch of one, or a list of Secrets. The names of the data are kept.
fn redact_secret(secret: &mut Json) {
    for field in ["data", "stringData"] {
        for part in secret.all_mut(field) {
            match part {
                Json::Null => {}
                Json::Object(data) => {
                    // In a patch, null deletes the entry.
                    let values = data.iter_mut().map(|(_, value)| value);
                    values
                        .filter(|value| **value != Json::Null)
                        .for_each(|value| *value = marker());
                }
                other => *other = marker(),
            }
        }
    }
    for metadata in secret.all_mut("metadata") {
        for annotations in metadata.all_mut("annotations") {
            annotations
                .all_mut(LAST_APPLIED)
                .for_each(|copy| *copy = marker());
        }
    }
    for items in secret.all_mut("items") {
        if let Json::List(items) = items {
            items.iter_mut().for_each(redact_secret);
        }
    }
}

/// Redacts an operation of a JSON patch of a Secret.
fn redact_operation(operation: &mut Json) {
    operation.all_mut("value").for_each(redact_values);
}

fn redact_values(json: &mut Json) {
    match json {
        Json::Text(_) => *json = marker(),
        Json::List(items) => items.iter_mut().for_each(redact_values),
        Json::Object(fields) => fields
            .iter_mut()
            .for_each(|(_, value)| redact_values(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Redacts the tokens of a TokenRequest or TokenReview.
fn redact_token(object: &mut Json) {
    for part in ["spec", "status"] {
        for part in object.all_mut(part) {
            for token in part.all_mut("token") {
                if *token != Json::Null {
                    *token = marker();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
