//! Rules of names and metadata, the same for all kinds.

use longshore_model::{KindInfo, StatusCause, name};
use serde_json::Value;

use super::Cause;
use crate::{
    facts::{self, NameRule},
    json::{self, Object},
};

pub(super) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
pub(super) const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SERVICE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Bytes of all annotations together.
const ANNOTATIONS: usize = 256 << 10;

fn length(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// A DNS label at a path.
pub(super) fn label(path: &str, text: &str, causes: &mut Vec<StatusCause>) {
    if text.len() > 63 {
        causes.push(Cause::invalid(path, text, &length(63)));
    }
    if name::dns_label("name", text).is_err() && !(text.len() > 63 && lowers(text)) {
        causes.push(Cause::invalid(path, text, LABEL));
    }
}

fn lowers(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A DNS subdomain at a path.
pub(super) fn subdomain(path: &str, text: &str, causes: &mut Vec<StatusCause>) {
    if text.len() > 253 {
        causes.push(Cause::invalid(path, text, &length(253)));
    } else if name::dns_subdomain("name", text).is_err() {
        causes.push(Cause::invalid(path, text, SUBDOMAIN));
    }
}

fn service_label(path: &str, text: &str, causes: &mut Vec<StatusCause>) {
    if text.len() > 63 {
        causes.push(Cause::invalid(path, text, &length(63)));
    }
    if !lowers(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        causes.push(Cause::invalid(path, text, SERVICE));
    }
}

/// Labels at a path.
pub(super) fn labels(path: &str, labels: Option<&Value>, causes: &mut Vec<StatusCause>) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if name::label_key(key).is_err() {
            causes.push(Cause::invalid(path, key.as_str(), QUALIFIED));
        }
        if value.len() > 63 {
            causes.push(Cause::invalid(path, value, &length(63)));
        } else if name::label_value(value).is_err() {
            causes.push(Cause::invalid(path, value, LABEL_VALUE));
        }
    }
}

/// What is wrong with an object's name and metadata.
pub(super) fn object(kind: &KindInfo, object: &Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let own = json::text(object, "metadata.name");
    match facts::of(&kind.gvk.group, &kind.gvk.kind).name {
        NameRule::Label => label("metadata.name", own, &mut causes),
        NameRule::Subdomain => subdomain("metadata.name", own, &mut causes),
        NameRule::ServiceLabel => service_label("metadata.name", own, &mut causes),
    }
    labels(
        "metadata.labels",
        json::at(object, "metadata.labels"),
        &mut causes,
    );
    annotations(object, &mut causes);
    for finalizer in strings(object, "metadata.finalizers") {
        if name::label_key(finalizer).is_err() {
            causes.push(Cause::invalid("metadata.finalizers", finalizer, QUALIFIED));
        } else if !finalizer.contains('/') && !["orphan", "foregroundDeletion"].contains(&finalizer)
        {
            causes.push(Cause::invalid(
                "metadata.finalizers",
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
    owners(object, &mut causes);
    causes
}

fn annotations(object: &Object, causes: &mut Vec<StatusCause>) {
    let annotations = json::at(object, "metadata.annotations").and_then(Value::as_object);
    let mut size = 0;
    for (key, value) in annotations.into_iter().flatten() {
        if name::label_key(&key.to_ascii_lowercase()).is_err() {
            causes.push(Cause::invalid(
                "metadata.annotations",
                key.as_str(),
                QUALIFIED,
            ));
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS));
    }
}

fn owners(object: &Object, causes: &mut Vec<StatusCause>) {
    let Some(Value::Object(metadata)) = object.get("metadata") else {
        return;
    };
    let mut controllers = 0;
    for (index, owner) in json::items(metadata, "ownerReferences").enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if json::text(owner, field).is_empty() {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                causes.push(Cause::invalid(&path, "", "must not be empty"));
            }
        }
        controllers += usize::from(owner.get("controller") == Some(&Value::Bool(true)));
    }
    if controllers > 1 {
        let list = metadata.get("ownerReferences").cloned().unwrap_or_default();
        causes.push(Cause::invalid(
            "metadata.ownerReferences",
            list,
            "Only one reference can have Controller set to true",
        ));
    }
}

fn strings<'a>(object: &'a Object, path: &str) -> impl Iterator<Item = &'a str> {
    json::at(object, path)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// What is wrong with a change of metadata.
pub(super) fn change(before: &Object, after: &Object) -> Vec<StatusCause> {
    if json::at(before, "metadata.deletionTimestamp").is_none() {
        return Vec::new();
    }
    let old: Vec<&str> = strings(before, "metadata.finalizers").collect();
    let new: Vec<&str> = strings(after, "metadata.finalizers")
        .filter(|name| !old.contains(name))
        .collect();
    if new.is_empty() {
        return Vec::new();
    }
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        new.iter()
            .map(|name| format!("{name:?}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    vec![Cause::forbidden("metadata.finalizers", &detail)]
}
