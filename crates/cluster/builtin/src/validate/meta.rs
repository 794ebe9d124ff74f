//! Validation of names and metadata, common to all kinds.

use longshore_model::{CauseList, KindInfo, StatusCause, name};
use longshore_schema::registry;
use serde_json::Value;

use crate::{
    cause::Cause,
    json::{self, Object},
    rules::{KindRules, NameRule},
};

pub(super) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
pub(super) const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SERVICE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Maximum total size of all annotations in bytes.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

fn length(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// Validates a DNS label.
pub(super) fn label(path: &str, text: &str, causes: &mut CauseList) {
    if text.len() > 63 {
        causes.push(Cause::invalid(path, text, &length(63)));
    }
    if name::dns_label("name", text).is_err() && !(text.len() > 63 && is_lower_case_label(text)) {
        let detail = match name::dns_subdomain("name", text) {
            Ok(_) => "must not contain dots",
            Err(_) => LABEL,
        };
        causes.push(Cause::invalid(path, text, detail));
    }
}

fn is_lower_case_label(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Validates a DNS subdomain.
pub(super) fn subdomain(path: &str, text: &str, causes: &mut CauseList) {
    if text.len() > 253 {
        causes.push(Cause::invalid(path, text, &length(253)));
    } else if name::dns_subdomain("name", text).is_err() {
        causes.push(Cause::invalid(path, text, SUBDOMAIN));
    }
}

pub(super) fn service_label(path: &str, text: &str, causes: &mut CauseList) {
    if text.len() > 63 {
        causes.push(Cause::invalid(path, text, &length(63)));
    }
    if !is_lower_case_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        causes.push(Cause::invalid(path, text, SERVICE));
    }
}

/// Validates a label value.
pub(super) fn label_value(path: &str, value: &str, causes: &mut CauseList) {
    if value.len() > 63 {
        let detail = "must be no more than 63 bytes";
        causes.push(Cause::invalid(path, value, detail));
    } else if name::label_value(value).is_err() {
        causes.push(Cause::invalid(path, value, LABEL_VALUE));
    }
}

/// Validates a qualified name: `example.org/name` or `name`.
pub(super) fn qualified(path: &str, text: &str, causes: &mut CauseList) {
    let (prefix, name) = match text.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    match prefix {
        Some("") => causes.push(Cause::invalid(path, text, "prefix part must be non-empty")),
        Some(prefix) if name::dns_subdomain("name", prefix).is_err() => {
            causes.push(Cause::invalid(
                path,
                text,
                &format!("prefix part {SUBDOMAIN}"),
            ));
        }
        _ => {}
    }
    if name.is_empty() {
        causes.push(Cause::invalid(path, text, "name part must be non-empty"));
    } else if name.len() > 63 {
        let detail = "name part must be no more than 63 bytes";
        causes.push(Cause::invalid(path, text, detail));
    }
    if name::label_value(name).is_err() && name.len() <= 63 || name.is_empty() {
        causes.push(Cause::invalid(path, text, QUALIFIED));
    }
}

/// Validates one segment of a URL path.
pub(super) fn path_segment(path: &str, text: &str, causes: &mut CauseList) {
    if text == "." || text == ".." {
        causes.push(Cause::invalid(path, text, &format!("may not be '{text}'")));
    }
    path_segment_prefix(path, text, causes);
}

/// Validates the beginning of a segment of a URL path.
fn path_segment_prefix(path: &str, text: &str, causes: &mut CauseList) {
    for part in ["/", "%"] {
        if text.contains(part) {
            let detail = format!("may not contain '{part}'");
            causes.push(Cause::invalid(path, text, &detail));
        }
    }
}

/// Validates labels.
pub(super) fn labels(path: &str, labels: Option<&Value>, causes: &mut CauseList) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        qualified(path, key, causes);
        label_value(path, value, causes);
    }
}

/// Finalizers without a domain that built-in kinds may have.
const FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Validates a name by the rule of its kind.
fn named(rule: NameRule, path: &str, own: &str, object: &Object, causes: &mut CauseList) {
    match rule {
        NameRule::Label => label(path, own, causes),
        NameRule::Subdomain => subdomain(path, own, causes),
        NameRule::PathSegment => path_segment(path, own, causes),
        NameRule::OfSigner => signed_name(path, own, object, causes),
        NameRule::Address => {
            if super::address::canonical(own).as_deref() != Some(own) {
                let usual = super::address::canonical(own).unwrap_or_default();
                let detail = super::address::problem(own).map_or_else(
                    || format!("must be in canonical form ({usual:?})"),
                    str::to_owned,
                );
                causes.push(Cause::invalid(path, own, &detail));
            }
        }
    }
}

/// Validates the name of a bundle, which begins with its signer.
fn signed_name(path: &str, own: &str, object: &Object, causes: &mut CauseList) {
    let signer = json::text(object, "spec.signerName");
    if signer.is_empty() {
        if own.contains(':') {
            let detail = "ClusterTrustBundle without signer name must not have \":\" in its name";
            return causes.push(Cause::invalid(path, own, detail));
        }
        return subdomain(path, own, causes);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match own.strip_prefix(&prefix) {
        Some(rest) => {
            let before = causes.len();
            subdomain(path, rest, causes);
            for cause in &mut causes[before..] {
                let (shown, whole) = (format!("{rest:?}"), format!("{own:?}"));
                cause.message = cause.message.replacen(&shown, &whole, 1);
            }
        }
        None => {
            let detail = format!(
                "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
            );
            causes.push(Cause::invalid(path, own, &detail));
        }
    }
}

/// Validates the name and metadata of an object.
pub(super) fn object(kind: &KindInfo, rules: &KindRules, object: &Object) -> CauseList {
    let mut causes = CauseList::new();
    let rule = rules.name;
    let prefix = json::text(object, "metadata.generateName");
    if rule == NameRule::PathSegment {
        path_segment_prefix("metadata.generateName", prefix, &mut causes);
    } else if !prefix.is_empty() {
        // The generated suffix makes a trailing dash valid.
        let masked = match prefix.strip_suffix('-') {
            Some(start) if !start.is_empty() => format!("{start}a"),
            _ => prefix.to_owned(),
        };
        let before = causes.len();
        named(rule, "metadata.generateName", &masked, object, &mut causes);
        for cause in &mut causes[before..] {
            let (shown, own) = (format!("{masked:?}"), format!("{prefix:?}"));
            cause.message = cause.message.replacen(&shown, &own, 1);
        }
    }
    named(
        rule,
        "metadata.name",
        json::text(object, "metadata.name"),
        object,
        &mut causes,
    );
    // Custom objects and their definitions are exempt from this rule.
    let own_kind = kind.gvk.group != "apiextensions.k8s.io" && registry().root(&kind.gvk).is_some();
    common(object, own_kind, &mut causes);
    causes
}

/// Validates the type and metadata of an object that is embedded in another object.
#[must_use]
pub fn embedded(object: &Object) -> CauseList {
    let mut causes = CauseList::new();
    for field in ["apiVersion", "kind"] {
        match object.get(field) {
            None => causes.push(Cause::required(field, "")),
            Some(Value::String(text)) if text.is_empty() => {
                causes.push(Cause::invalid(field, "", "must not be empty"));
            }
            Some(Value::String(text)) if field == "kind" => embedded_kind(text, &mut causes),
            Some(Value::String(text)) => {
                if text.split('/').count() > 2 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    causes.push(Cause::invalid(field, text.as_str(), &detail));
                }
            }
            Some(other) => causes.push(Cause::invalid(field, other.clone(), "must be a string")),
        }
    }
    let prefix = json::text(object, "metadata.generateName");
    path_segment_prefix("metadata.generateName", prefix, &mut causes);
    let name = json::text(object, "metadata.name");
    path_segment("metadata.name", name, &mut causes);
    let namespace = json::text(object, "metadata.namespace");
    if !namespace.is_empty() {
        label("metadata.namespace", namespace, &mut causes);
    }
    common(object, false, &mut causes);
    managed_fields(object, &mut causes);
    causes
}

fn embedded_kind(kind: &str, causes: &mut CauseList) {
    let mut problems = CauseList::new();
    service_label("kind", &kind.to_ascii_lowercase(), &mut problems);
    let shown = format!("Invalid value: {:?}: ", kind.to_ascii_lowercase());
    let details = problems
        .iter()
        .filter_map(|cause| cause.message.strip_prefix(&shown));
    let details: Vec<&str> = details.collect();
    if !details.is_empty() {
        let details = details.join(",");
        let detail = format!("may have mixed case, but should otherwise match: {details}");
        causes.push(Cause::invalid("kind", kind, &detail));
    }
}

/// Validates the metadata of managers, which only embedded objects can set freely.
fn managed_fields(object: &Object, causes: &mut CauseList) {
    let Some(Value::Object(metadata)) = object.get("metadata") else {
        return;
    };
    for (index, entry) in json::items(metadata, "managedFields").enumerate() {
        let path = |field: &str| format!("metadata.managedFields[{index}].{field}");
        match json::text(entry, "operation") {
            "" => causes.push(Cause::required(&path("operation"), "must not be empty")),
            "Apply" | "Update" => {}
            other => {
                let supported = ["Apply", "Update"];
                causes.push(Cause::not_supported(&path("operation"), other, &supported));
            }
        }
        let form = json::text(entry, "fieldsType");
        if !form.is_empty() && form != "FieldsV1" {
            causes.push(Cause::invalid(
                &path("fieldsType"),
                form,
                "must be `FieldsV1`",
            ));
        }
        for (field, limit) in [("manager", 128), ("subresource", 256)] {
            if json::text(entry, field).len() > limit {
                causes.push(Cause::too_long(&path(field), limit));
            }
        }
    }
}

/// Validates the metadata that has the same rules for all objects.
fn common(object: &Object, own_kind: bool, causes: &mut CauseList) {
    if let Some(negative) = json::number(object, "metadata.generation").filter(|g| *g < 0) {
        let detail = "must be greater than or equal to 0";
        causes.push(Cause::invalid("metadata.generation", negative, detail));
    }
    let given = json::at(object, "metadata.labels");
    labels("metadata.labels", given, causes);
    annotations(object, causes);
    for (index, finalizer) in strings(object, "metadata.finalizers").enumerate() {
        qualified("metadata.finalizers", finalizer, causes);
        if own_kind && !finalizer.contains('/') && !FINALIZERS.contains(&finalizer) {
            causes.push(Cause::invalid(
                &format!("metadata.finalizers[{index}]"),
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
    let both = ["orphan", "foregroundDeletion"]
        .iter()
        .all(|name| strings(object, "metadata.finalizers").any(|other| other == *name));
    if both {
        let list = json::at(object, "metadata.finalizers").cloned();
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid(
            "metadata.finalizers",
            list.unwrap_or_default(),
            detail,
        ));
    }
    owners(object, causes);
}

fn annotations(object: &Object, causes: &mut CauseList) {
    let annotations = json::at(object, "metadata.annotations").and_then(Value::as_object);
    let mut size = 0;
    for (key, value) in annotations.into_iter().flatten() {
        if name::label_key(&key.to_ascii_lowercase()).is_err() {
            let before = causes.len();
            qualified("metadata.annotations", &key.to_ascii_lowercase(), causes);
            for cause in &mut causes[before..] {
                cause.message = cause.message.replace(&key.to_ascii_lowercase(), key);
            }
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATION_BYTES {
        causes.push(Cause::too_long(
            "metadata.annotations",
            MAX_ANNOTATION_BYTES,
        ));
    }
}

fn owners(object: &Object, causes: &mut CauseList) {
    let Some(Value::Object(metadata)) = object.get("metadata") else {
        return;
    };
    let mut controllers: Vec<String> = Vec::new();
    for (index, owner) in json::items(metadata, "ownerReferences").enumerate() {
        let path = format!("metadata.ownerReferences[{index}]");
        let version = json::text(owner, "apiVersion");
        for field in ["apiVersion", "kind", "name", "uid"] {
            let text = json::text(owner, field);
            let path = format!("{path}.{field}");
            if text.is_empty() {
                causes.push(Cause::required(&path, "must not be empty"));
            } else if field == "apiVersion" && (text.split('/').count() > 2 || text.ends_with('/'))
            {
                causes.push(Cause::invalid(&path, text, "version must not be empty"));
            }
        }
        if version == "v1" && json::text(owner, "kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            let owner = Value::Object(owner.clone());
            causes.push(Cause::invalid(&path, owner, detail));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let (kind, name) = (json::text(owner, "kind"), json::text(owner, "name"));
            controllers.push(format!("{kind}/{name}"));
        }
    }
    for pair in controllers.windows(2) {
        let list = metadata.get("ownerReferences").cloned().unwrap_or_default();
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            controllers[0], pair[1]
        );
        causes.push(Cause::invalid("metadata.ownerReferences", list, &detail));
    }
}

fn strings<'a>(object: &'a Object, path: &str) -> impl Iterator<Item = &'a str> {
    json::at(object, path)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Validates that a write does not set or change the deletion timestamp or the grace period; only a
/// delete can.
#[must_use]
pub fn deletion(before: &Object, sent: &Object) -> Vec<StatusCause> {
    let began = |object| json::at(object, "metadata.deletionTimestamp").cloned();
    let grace = |object| json::at(object, "metadata.deletionGracePeriodSeconds").cloned();
    let mut causes = CauseList::new();
    let mut immutable = |field: &str, value: Value| {
        causes.push(Cause::invalid(field, value, "field is immutable"));
    };
    if let (None, Some(value)) = (began(before), began(sent)) {
        immutable("metadata.deletionTimestamp", value);
    }
    if let Some(value) = grace(sent).filter(|value| grace(before).as_ref() != Some(value)) {
        immutable("metadata.deletionGracePeriodSeconds", value);
    }
    causes.into_vec()
}

/// Validates a change of metadata.
pub(super) fn change(before: &Object, after: &Object) -> CauseList {
    if json::at(before, "metadata.deletionTimestamp").is_none() {
        return CauseList::new();
    }
    let old: Vec<&str> = strings(before, "metadata.finalizers").collect();
    let new: Vec<&str> = strings(after, "metadata.finalizers")
        .filter(|name| !old.contains(name))
        .collect();
    if new.is_empty() {
        return CauseList::new();
    }
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        new.iter()
            .map(|name| format!("{name:?}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    CauseList::from_iter([Cause::forbidden("metadata.finalizers", &detail)])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_trust_bundles_begin_with_the_signer() {
        let problem = |own: &str, signer: &str| {
            let object = json!({"spec": {"signerName": signer}});
            let mut causes = CauseList::new();
            signed_name(
                "metadata.name",
                own,
                object.as_object().unwrap(),
                &mut causes,
            );
            causes.into_vec().pop().map(|cause| cause.message)
        };
        assert_eq!(problem("a.b", ""), None);
        assert_eq!(problem("a.example:signer:x", "a.example/signer"), None);
        assert!(problem("a:b", "").unwrap().contains("must not have \":\""));
        let missing = problem("x", "a.example/signer").unwrap();
        assert!(missing.ends_with("must be named with prefix a.example:signer:"));
        let bad = problem("a.example:signer:X", "a.example/signer").unwrap();
        assert!(bad.starts_with("Invalid value: \"a.example:signer:X\": a lowercase"));
    }
}
