//! Requests for devices, and references to them.

use std::collections::{BTreeMap, BTreeSet};

use super::{FieldValue, at_most, subdomain, taint};
use crate::{cause::Cause, validate::field_value::Causes};

/// Maximum length of an expression.
const MAX_EXPRESSION: usize = 10 << 10;

/// The names of the requests of a claim, each with the names of its alternatives.
pub(super) struct Names<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Names<'a> {
    pub(super) fn of(devices: &FieldValue<'a>) -> Self {
        let requests = devices.get("requests").items();
        Self(
            requests
                .map(|request| {
                    let alternatives = request.get("firstAvailable").items();
                    let alternatives = alternatives.map(|one| one.get("name").text());
                    (request.get("name").text(), alternatives.collect())
                })
                .collect(),
        )
    }

    fn has(&self, name: &str) -> bool {
        match name.split_once('/') {
            None => self.0.contains_key(name),
            Some((request, alternative)) => self
                .0
                .get(request)
                .is_some_and(|alternatives| alternatives.contains(alternative)),
        }
    }

    /// Requires the name of a request or of a request's alternative.
    pub(super) fn check(&self, name: &FieldValue<'_>, causes: &mut Causes<'_>) {
        const DETAIL: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
        let parts: Vec<&str> = name.text().split('/').collect();
        if parts.len() > 2 {
            return causes.invalid(name, DETAIL);
        }
        for part in parts {
            crate::validate::meta::label(&name.path, part, causes.0);
        }
        if !self.has(name.text()) {
            causes.invalid(name, DETAIL);
        }
    }

    /// Validates a list of names of requests.
    pub(super) fn check_all(&self, names: &FieldValue<'_>, causes: &mut Causes<'_>) {
        at_most(names, 32, causes);
        causes.unique(names.items());
        for name in names.items() {
            self.check(&name, causes);
        }
    }
}

pub(super) fn request(request: &FieldValue<'_>, causes: &mut Causes<'_>) {
    causes.label(&request.get("name"));
    let (exactly, alternatives) = (request.get("exactly"), request.get("firstAvailable"));
    match (exactly.is_set(), alternatives.len() > 0) {
        (false, false) => causes.required(
            request,
            "exactly one of `exactly` or `firstAvailable` is required",
        ),
        (true, true) => causes.0.push(Cause::invalid(
            &request.path,
            serde_json::Value::Null,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        )),
        (true, false) => of_class(&exactly, causes),
        (false, true) => {
            at_most(&alternatives, 8, causes);
            for alternative in alternatives.items() {
                causes.label(&alternative.get("name"));
                of_class(&alternative, causes);
            }
            causes.unique(alternatives.items().map(|one| {
                let path = one.path.clone();
                one.get("name").with_path(path)
            }));
        }
    }
}

/// Validates a request for devices of a class.
fn of_class(request: &FieldValue<'_>, causes: &mut Causes<'_>) {
    subdomain(&request.get("deviceClassName"), causes);
    selectors(&request.get("selectors"), causes);
    let (mode, count) = (request.get("allocationMode"), request.get("count"));
    let number = count.number().unwrap_or_default();
    match mode.text() {
        "All" if number != 0 => {
            causes.invalid(&count, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if number <= 0 => {
            causes.invalid(&count, "must be greater than zero");
        }
        "All" | "ExactCount" => {}
        _ => causes.not_supported(&mode, &["All", "ExactCount"]),
    }
    let tolerations = request.get("tolerations");
    at_most(&tolerations, 16, causes);
    for toleration in tolerations.items() {
        taint::toleration(&toleration, causes);
    }
}

/// Validates expressions that select devices.
pub(super) fn selectors(selectors: &FieldValue<'_>, causes: &mut Causes<'_>) {
    at_most(selectors, 32, causes);
    for selector in selectors.items() {
        let cel = selector.get("cel");
        let expression = cel.get("expression");
        if !cel.is_set() {
            causes.required(&cel, "");
        } else if expression.text().is_empty() {
            causes.required(&expression, "");
        } else if expression.text().len() > MAX_EXPRESSION {
            causes
                .0
                .push(Cause::too_long(&expression.path, MAX_EXPRESSION));
        }
    }
}
