//! Validation of conditions that have the type `Condition` of the Kubernetes API.

use std::collections::HashSet;

use crate::{
    cause::Cause,
    validate::field_value::{Causes, FieldValue},
};

const MAX_REASON: usize = 1024;
const MAX_MESSAGE: usize = 32 * 1024;
const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

pub(super) fn check(conditions: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let mut seen = HashSet::new();
    for condition in conditions.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if !seen.insert(kind.text()) {
            let duplicate = Cause::duplicate(&condition.path, kind.text());
            causes.0.push(duplicate);
        }
        match kind.text() {
            "" => causes.required(&kind, "is required"),
            _ => causes.qualified(&kind),
        }
        match status.text() {
            "" => causes.required(&status, ""),
            _ => causes.one_of(&status, &["False", "True", "Unknown"]),
        }
        let generation = condition.get("observedGeneration");
        if generation.number().is_some_and(|number| number < 0) {
            causes.invalid(&generation, "must be greater than or equal to zero");
        }
        let time = condition.get("lastTransitionTime");
        if time.text().is_empty() {
            causes.required(&time, "");
        }
        reason(&condition.get("reason"), causes);
        let message = condition.get("message");
        if message.text().len() > MAX_MESSAGE {
            causes.0.push(Cause::too_long(&message.path, MAX_MESSAGE));
        }
    }
}

fn reason(reason: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let text = reason.text();
    if text.is_empty() {
        return causes.required(reason, "");
    }
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte);
    let is_valid = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(is_inner)
        && !text.ends_with([',', ':']);
    if !is_valid {
        causes.invalid(reason, REASON);
    }
    if text.len() > MAX_REASON {
        causes.0.push(Cause::too_long(&reason.path, MAX_REASON));
    }
}
