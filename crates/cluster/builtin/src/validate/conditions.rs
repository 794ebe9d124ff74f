//! Validation of the conditions of a status that have the type `metav1.Condition`.

use std::collections::HashSet;

use longshore_model::CauseList;

use super::field_value::{Causes, FieldValue};
use crate::cause::Cause;

const MAX_REASON_BYTES: usize = 1 << 10;
const MAX_MESSAGE_BYTES: usize = 32 << 10;
const INVALID_REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

pub(super) fn check(conditions: &FieldValue<'_>, causes: &mut CauseList) {
    let mut types = HashSet::new();
    for condition in conditions.items() {
        let kind = condition.get("type");
        if !types.insert(kind.text()) {
            causes.push(Cause::duplicate(&condition.path, kind.text()));
        }
        check_one(&condition, causes);
    }
}

fn check_one(condition: &FieldValue<'_>, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let (kind, status) = (condition.get("type"), condition.get("status"));
    if kind.text().is_empty() {
        causes.required(&kind, "is required");
    } else {
        causes.qualified(&kind);
    }
    if status.text().is_empty() {
        causes.required(&status, "");
    } else {
        causes.one_of(&status, &["False", "True", "Unknown"]);
    }
    causes.not_negative(&condition.get("observedGeneration"));
    let time = condition.get("lastTransitionTime");
    if time.text().is_empty() {
        causes.required(&time, "");
    }
    let reason = condition.get("reason");
    if reason.text().is_empty() {
        causes.required(&reason, "");
    } else {
        if !is_reason(reason.text()) {
            causes.invalid(&reason, INVALID_REASON);
        }
        if reason.text().len() > MAX_REASON_BYTES {
            causes
                .0
                .push(Cause::too_long(&reason.path, MAX_REASON_BYTES));
        }
    }
    let message = condition.get("message");
    if message.text().len() > MAX_MESSAGE_BYTES {
        causes
            .0
            .push(Cause::too_long(&message.path, MAX_MESSAGE_BYTES));
    }
}

fn is_reason(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let inner = |byte: u8| word(byte) || matches!(byte, b',' | b':');
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|byte| word(*byte))
        && bytes.iter().all(|byte| inner(*byte))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn reasons_are_words_with_separators() {
        for reason in ["A", "MyName", "ReasonA,ReasonB", "a_:_"] {
            assert!(is_reason(reason), "{reason}");
        }
        for reason in ["", "1a", "_a", "a:", "a b", "a,"] {
            assert!(!is_reason(reason), "{reason}");
        }
    }

    #[test]
    fn every_field_is_checked() {
        let status = json!({"conditions": [
            {"type": "A", "status": "True", "reason": "R", "message": "",
             "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "A", "status": "Yes", "reason": "1", "observedGeneration": -1},
            {},
        ]});
        let object = json!({"status": status});
        let mut causes = CauseList::new();
        let conditions = FieldValue::field(object.as_object().unwrap(), "status").get("conditions");
        check(&conditions, &mut causes);
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "status.conditions[1]",
                "status.conditions[1].status",
                "status.conditions[1].observedGeneration",
                "status.conditions[1].lastTransitionTime",
                "status.conditions[1].reason",
                "status.conditions[2].type",
                "status.conditions[2].status",
                "status.conditions[2].lastTransitionTime",
                "status.conditions[2].reason",
            ]
        );
    }
}
