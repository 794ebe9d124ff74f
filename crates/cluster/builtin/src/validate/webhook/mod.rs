//! Validation of webhook configurations.

mod client;
mod rules;

use std::collections::HashSet;

use longshore_model::{CauseList, name};

use super::{
    field_value::{Causes, FieldValue},
    meta, selector,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

pub(super) use client::port;
pub(super) use rules::rule;

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
/// The name suffix reserved for configurations from manifest files.
const STATIC: &str = ".static.k8s.io";

pub(crate) fn new_object(object: &Object, causes: &mut CauseList) {
    let name = json::text(object, "metadata.name");
    if name.ends_with(STATIC) {
        let detail = format!(
            "names ending with {STATIC:?} are reserved for static manifest-based configurations and cannot be managed via the API"
        );
        causes.push(Cause::invalid("metadata.name", name, &detail));
    }
}

pub(crate) fn configuration(object: &Object, causes: &mut CauseList) {
    let (webhooks, causes) = (FieldValue::field(object, "webhooks"), &mut Causes(causes));
    for one in webhooks.items() {
        webhook(&one, causes);
    }
    causes.unique(webhooks.items().map(|one| one.get("name")));
}

fn webhook(webhook: &FieldValue<'_>, causes: &mut Causes<'_>) {
    qualified_name(&webhook.get("name"), causes);
    webhook
        .get("rules")
        .items()
        .for_each(|one| rules::rule(&one, causes));
    for (field, words) in [
        ("failurePolicy", ["Fail", "Ignore"]),
        ("matchPolicy", ["Equivalent", "Exact"]),
        ("reinvocationPolicy", ["IfNeeded", "Never"]),
    ] {
        causes.one_of_if_set(&webhook.get(field), &words);
    }
    let effects = webhook.get("sideEffects");
    if effects.is_set() {
        causes.one_of(&effects, &["None", "NoneOnDryRun"]);
    } else {
        causes.required(&effects, "must specify one of None, NoneOnDryRun");
    }
    let timeout = webhook.get("timeoutSeconds");
    if timeout
        .number()
        .is_some_and(|seconds| !(1..=30).contains(&seconds))
    {
        causes.invalid(
            &timeout,
            "the timeout value must be between 1 and 30 seconds",
        );
    }
    selector::check(&webhook.get("namespaceSelector"), causes);
    selector::check(&webhook.get("objectSelector"), causes);
    client::config(&webhook.get("clientConfig"), causes);
    conditions(&webhook.get("matchConditions"), causes);
    versions(&webhook.get("admissionReviewVersions"), causes);
}

fn qualified_name(at: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if at.text().is_empty() {
        causes.required(at, "");
    } else if name::dns_subdomain("name", at.text()).is_err() {
        causes.subdomain(at);
    } else if at.text().split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        causes.invalid(at, detail);
    }
}

fn conditions(conditions: &FieldValue<'_>, causes: &mut Causes<'_>) {
    check_conditions(conditions, causes, &|source| {
        longshore_cel::check_condition(source).map_err(|error| error.to_string())
    });
}

/// Validates match conditions, with a function that compiles them.
pub(super) fn check_conditions(
    conditions: &FieldValue<'_>,
    causes: &mut Causes<'_>,
    compile: &dyn Fn(&str) -> Result<(), String>,
) {
    if conditions.len() > 64 {
        let message = format!("Too many: {}: must have at most 64 items", conditions.len());
        let cause = Cause::plain(&conditions.path, "FieldValueTooMany", message);
        causes.0.push(cause);
    }
    for condition in conditions.items() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        let source = expression.text().trim();
        if source.is_empty() {
            causes.required(&expression, "");
        } else if let Err(error) = compile(source) {
            causes
                .0
                .push(Cause::invalid(&expression.path, source, &error));
        }
        if name.text().is_empty() {
            causes.required(&name, "");
        } else {
            causes.qualified(&name);
        }
    }
    causes.unique(conditions.items().map(|condition| condition.get("name")));
}

fn versions(versions: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if versions.len() == 0 {
        return causes.required(versions, "must specify one of v1, v1beta1");
    }
    let mut seen = HashSet::new();
    for version in versions.items() {
        if !seen.insert(version.text()) {
            causes.invalid(&version, "duplicate version");
            continue;
        }
        meta::service_label(&version.path, version.text(), causes.0);
    }
    if !REVIEWS.iter().any(|known| seen.contains(known)) {
        causes.invalid(versions, "must include at least one of v1, v1beta1");
    }
}
