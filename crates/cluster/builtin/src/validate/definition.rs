//! Validation of CustomResourceDefinitions.

use longshore_model::CauseList;
use longshore_schema::{Structural, structural::rules};
use serde_json::Value;

use super::meta;
use crate::{
    cause::{Cause, one_of},
    definition::{is_condition_true, versions},
    json::{self, Object},
};

/// The types of printer columns.
const COLUMNS: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
/// Maximum number of selectable fields of a version.
const MAX_SELECTABLE_FIELDS: usize = 8;
const APPROVED: &str = "api-approved.kubernetes.io";
const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

pub(crate) fn object(definition: &Object, causes: &mut CauseList) {
    let plural = json::text(definition, "spec.names.plural");
    let group = json::text(definition, "spec.group");
    let name = json::text(definition, "metadata.name");
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", name, why));
    }
    spec(definition, group, causes);
    let accepted = json::at(definition, "status.acceptedNames").and_then(Value::as_object);
    if let Some(accepted) = accepted {
        names(accepted, "status.acceptedNames", causes);
    }
    stored_versions(definition, causes);
    approval(definition, group, causes);
    if json::at(definition, "spec.preserveUnknownFields") == Some(&Value::Bool(true)) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.push(Cause::invalid("spec.preserveUnknownFields", true, why));
    }
}

pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    let established = is_condition_true(before, "Established");
    let always = ["spec.group", "spec.names.plural"];
    let later: &[&str] = if established {
        &["spec.scope", "spec.names.kind"]
    } else {
        &[]
    };
    for path in later.iter().chain(&always) {
        if json::at(before, path) != json::at(after, path) {
            causes.push(Cause::immutable(path, json::at(after, path)));
        }
    }
}

fn spec(definition: &Object, group: &str, causes: &mut CauseList) {
    if group.is_empty() {
        causes.push(Cause::required("spec.group", ""));
    } else {
        let known = causes.len();
        meta::subdomain("spec.group", group, causes);
        if causes.len() == known && !group.contains('.') {
            let why = "should be a domain with at least one dot";
            causes.push(Cause::invalid("spec.group", group, why));
        }
    }
    match json::text(definition, "spec.scope") {
        "" => causes.push(Cause::required("spec.scope", "")),
        _ => {
            let spec = json::at(definition, "spec").and_then(Value::as_object);
            let scopes = &["Cluster", "Namespaced"];
            if let Some(spec) = spec {
                one_of(spec, "scope", "spec.scope", scopes, causes);
            }
        }
    }
    all_versions(definition, causes);
    let none = Object::new();
    let own = json::at(definition, "spec.names")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    for field in ["plural", "singular", "kind", "listKind"] {
        if json::text(own, field).is_empty() {
            causes.push(Cause::required(&format!("spec.names.{field}"), ""));
        }
    }
    names(own, "spec.names", causes);
    conversion(definition, causes);
}

fn names(names: &Object, path: &str, causes: &mut CauseList) {
    let mut check = |path: String, given: &str, name: &str, why: &str| {
        if !name.is_empty() && !is_label(name) {
            causes.push(Cause::invalid(&path, given, why));
        }
    };
    let mixed = format!("may have mixed case, but should otherwise match: {LABEL}");
    for field in ["plural", "singular"] {
        let name = json::text(names, field);
        check(format!("{path}.{field}"), name, name, LABEL);
    }
    for field in ["kind", "listKind"] {
        let name = json::text(names, field);
        check(
            format!("{path}.{field}"),
            name,
            &name.to_lowercase(),
            &mixed,
        );
    }
    for field in ["shortNames", "categories"] {
        let words = names.get(field).and_then(Value::as_array);
        for (index, word) in words.into_iter().flatten().enumerate() {
            let word = word.as_str().unwrap_or_default();
            check(format!("{path}.{field}[{index}]"), word, word, LABEL);
        }
    }
    let kind = json::text(names, "kind");
    if !kind.is_empty() && kind == json::text(names, "listKind") {
        let why = "kind and listKind may not be the same";
        causes.push(Cause::invalid(&format!("{path}.listKind"), kind, why));
    }
}

fn is_label(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(plain)
}

/// Returns a field that all versions have in common. Kubernetes reports its
/// errors once, at the spec.
fn shared<'a>(definition: &'a Object, field: &str) -> Option<&'a Value> {
    let mut values = versions(definition).map(|version| version.get(field));
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

fn all_versions(definition: &Object, causes: &mut CauseList) {
    let shown = || {
        let versions = versions(definition).map(|version| json::text(version, "name"));
        Value::from(versions.collect::<Vec<_>>())
    };
    for (index, version) in versions(definition).enumerate() {
        if json::at(version, "schema.openAPIV3Schema").is_none() {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            causes.push(Cause::required(&path, ""));
        }
    }
    let mut seen = Vec::new();
    for (index, version) in versions(definition).enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = json::text(version, "name");
        seen.push(name);
        if !is_label(name) {
            causes.push(Cause::invalid(&format!("{path}.name"), name, LABEL));
        }
        one_version(definition, version, &path, causes);
    }
    let storage = versions(definition)
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .count();
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    if seen.len() != count {
        let why = "must contain unique version names";
        causes.push(Cause::invalid("spec.versions", shown(), why));
    }
    if storage != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", shown(), why));
    }
    let first = versions(definition).next();
    let Some(first) = first else { return };
    if shared(definition, "schema").is_some() {
        schema(first, "spec.validation", has_status(first), causes);
        selectable(first, "spec", causes);
    }
    if shared(definition, "subresources").is_some() {
        subresources(first, "spec.subresources", causes);
    }
    if shared(definition, "additionalPrinterColumns").is_some() {
        columns(first, "spec.additionalPrinterColumns", causes);
    }
}

fn has_status(version: &Object) -> bool {
    json::at(version, "subresources.status").is_some()
}

fn one_version(definition: &Object, version: &Object, path: &str, causes: &mut CauseList) {
    if let Some(Value::String(warning)) = version.get("deprecationWarning") {
        let path = format!("{path}.deprecationWarning");
        let mut say = |why| causes.push(Cause::invalid(&path, warning.as_str(), why));
        if version.get("deprecated") != Some(&Value::Bool(true)) {
            say("can only be set for deprecated versions");
        } else if warning.len() > 256 {
            say("must be <= 256 characters long");
        } else if warning.is_empty() {
            say("must not be an empty string");
        } else if warning.chars().any(char::is_control) {
            say("must only contain printable UTF-8 characters");
        }
    }
    if shared(definition, "schema").is_none() {
        schema(
            version,
            &format!("{path}.schema"),
            has_status(version),
            causes,
        );
        selectable(version, path, causes);
    }
    if shared(definition, "subresources").is_none() {
        subresources(version, &format!("{path}.subresources"), causes);
    }
    if shared(definition, "additionalPrinterColumns").is_none() {
        columns(version, &format!("{path}.additionalPrinterColumns"), causes);
    }
}

fn schema(version: &Object, path: &str, has_status: bool, causes: &mut CauseList) {
    if let Some(schema) = json::at(version, "schema.openAPIV3Schema") {
        let path = format!("{path}.openAPIV3Schema");
        let mut found = rules::check(schema, &path, has_status);
        let is_valid = found.is_empty();
        found.extend(longshore_cel::rules::check(schema, &path, is_valid));
        causes.extend(found);
    }
}

fn json_path(text: &str, path: &str, causes: &mut CauseList) -> bool {
    let simple = text.starts_with('.');
    if text.is_empty() {
        causes.push(Cause::required(path, ""));
    } else if !simple {
        let why = "must be a simple json path starting with .";
        causes.push(Cause::invalid(path, text, why));
    }
    simple
}

fn subresources(version: &Object, path: &str, causes: &mut CauseList) {
    let Some(Value::Object(scale)) = json::at(version, "subresources.scale") else {
        return;
    };
    for (field, root) in [
        ("specReplicasPath", ".spec."),
        ("statusReplicasPath", ".status."),
    ] {
        let text = json::text(scale, field);
        let path = format!("{path}.scale.{field}");
        if json_path(text, &path, causes) && !text.starts_with(root) {
            let why = format!("should be a json path under {}", root.trim_end_matches('.'));
            causes.push(Cause::invalid(&path, text, &why));
        }
    }
    let text = json::text(scale, "labelSelectorPath");
    let path = format!("{path}.scale.labelSelectorPath");
    if !text.is_empty()
        && json_path(text, &path, causes)
        && !text.starts_with(".spec.")
        && !text.starts_with(".status.")
    {
        let why = "should be a json path under either .spec or .status";
        causes.push(Cause::invalid(&path, text, why));
    }
}

fn columns(version: &Object, path: &str, causes: &mut CauseList) {
    for (index, column) in json::items(version, "additionalPrinterColumns").enumerate() {
        let path = format!("{path}[{index}]");
        if json::text(column, "name").is_empty() {
            causes.push(Cause::required(&format!("{path}.name"), ""));
        }
        let must = format!("must be one of {}", COLUMNS.join(","));
        match json::text(column, "type") {
            "" => causes.push(Cause::required(&format!("{path}.type"), &must)),
            kind if !COLUMNS.contains(&kind) => {
                causes.push(Cause::invalid(&format!("{path}.type"), kind, &must));
            }
            _ => {}
        }
        let format = json::text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let must = format!("must be one of {}", FORMATS.join(","));
            causes.push(Cause::invalid(&format!("{path}.format"), format, &must));
        }
        let text = json::text(column, "jsonPath");
        json_path(text, &format!("{path}.JSONPath"), causes);
    }
}

fn selectable(version: &Object, path: &str, causes: &mut CauseList) {
    let fields: Vec<&Object> = json::items(version, "selectableFields").collect();
    if fields.is_empty() {
        return;
    }
    let schema = json::at(version, "schema.openAPIV3Schema").map(Structural::parse);
    let mut seen = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let path = format!("{path}.selectableFields[{index}].jsonPath");
        let text = json::text(field, "jsonPath");
        if text.is_empty() {
            causes.push(Cause::required(&path, ""));
            continue;
        }
        let found = schema.as_ref().and_then(|schema| {
            let mut parts = text.strip_prefix('.')?.split('.');
            parts.try_fold(schema, |at, part| at.property(part))
        });
        let Some(found) = found else {
            let why = "is an invalid path: does not refer to a valid field";
            causes.push(Cause::invalid(&path, text, why));
            continue;
        };
        if text.starts_with(".metadata") {
            let why = "must not point to fields in metadata";
            causes.push(Cause::invalid(&path, text, why));
        }
        if !found.is_selectable() {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            causes.push(Cause::invalid(&path, text, why));
        }
        if seen.contains(&text) {
            causes.push(Cause::duplicate(&path, text));
        }
        seen.push(text);
    }
    if seen.len() > MAX_SELECTABLE_FIELDS {
        causes.push(Cause::plain(
            &format!("{path}.selectableFields"),
            "FieldValueTooMany",
            format!(
                "Too many: {}: must have at most {MAX_SELECTABLE_FIELDS} items",
                seen.len()
            ),
        ));
    }
}

fn stored_versions(definition: &Object, causes: &mut CauseList) {
    let path = "status.storedVersions";
    let stored = json::at(definition, path)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if stored.is_empty() {
        let why = "must have at least one stored version";
        return causes.push(Cause::invalid(path, stored, why));
    }
    for version in versions(definition) {
        let name = json::text(version, "name");
        let is_storage = version.get("storage") == Some(&Value::Bool(true));
        if is_storage && !stored.iter().any(|known| known == name) {
            let why = format!("must have the storage version {name}");
            causes.push(Cause::invalid(path, stored.clone(), &why));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        if !versions(definition).any(|version| json::text(version, "name") == name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            causes.push(Cause::invalid(&format!("{path}[{index}]"), name, &why));
        }
    }
}

fn conversion(definition: &Object, causes: &mut CauseList) {
    let path = "spec.conversion";
    let none = Object::new();
    let conversion = json::at(definition, path)
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let strategies = &["None", "Webhook"];
    one_of(
        conversion,
        "strategy",
        "spec.conversion.strategy",
        strategies,
        causes,
    );
    let webhook = conversion.get("webhook");
    if json::text(conversion, "strategy") != "Webhook" {
        if webhook.is_some() {
            let why = "should not be set when strategy is not set to Webhook";
            causes.push(Cause::forbidden("spec.conversion.webhookClientConfig", why));
        }
        return;
    }
    let config = webhook.and_then(|webhook| webhook.get("clientConfig"));
    if config.is_none() {
        let why = "required when strategy is set to Webhook";
        causes.push(Cause::required("spec.conversion.webhookClientConfig", why));
    }
    let understood: Vec<&str> = webhook
        .and_then(|webhook| webhook["conversionReviewVersions"].as_array())
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let path = "spec.conversion.conversionReviewVersions";
    if understood.is_empty() {
        causes.push(Cause::required(path, ""));
    } else if !understood.iter().any(|v| matches!(*v, "v1" | "v1beta1")) {
        let why = "must include at least one of v1, v1beta1";
        causes.push(Cause::invalid(path, understood, why));
    }
}

/// Validates that a kind in a group reserved for the Kubernetes project is approved.
fn approval(definition: &Object, group: &str, causes: &mut CauseList) {
    let own = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    if !own("k8s.io") && !own("kubernetes.io") {
        return;
    }
    let annotations = json::at(definition, "metadata.annotations");
    let text = annotations
        .and_then(|all| all[APPROVED].as_str())
        .unwrap_or_default();
    let path = format!("metadata.annotations[{APPROVED}]");
    if text.is_empty() {
        let why = format!(
            "protected groups must have approval annotation {APPROVED:?}, see https://github.com/kubernetes/enhancements/pull/1111"
        );
        causes.push(Cause::required(&path, &why));
    } else if !text.starts_with("unapproved") && !text.contains("://") {
        let why = "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111";
        causes.push(Cause::invalid(&path, text, why));
    }
}
