//! Validation of CertificateSigningRequests. Only the PEM block of the request
//! is checked, not its contents or signature.

use std::collections::HashSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_model::{CauseList, name};
use serde_json::Value;

use super::{
    field_value::{Causes, FieldValue},
    meta, pem,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// Condition types that cannot have the status `False`.
const ALWAYS_TRUE: [&str; 3] = ["Approved", "Denied", "Failed"];
const CONDITIONS: &str = "status.conditions";

fn decoded(at: &FieldValue<'_>) -> String {
    let bytes = STANDARD.decode(at.text()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

pub(crate) fn request(object: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let request = spec.get("request");
    let text = decoded(&request);
    if pem::block(&text).is_none_or(|(kind, ..)| kind != "CERTIFICATE REQUEST") {
        causes.invalid(&request, "PEM block type must be CERTIFICATE REQUEST");
    }
    let usages = spec.get("usages");
    if usages.len() == 0 {
        causes.required(&usages, "");
    }
    usages
        .items()
        .for_each(|usage| causes.one_of(&usage, USAGES));
    causes.unique(usages.items());
    signer(&spec.get("signerName"), causes);
    let expiration = spec.get("expirationSeconds");
    if expiration.number().is_some_and(|seconds| seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.invalid(&expiration, detail);
    }
}

fn signer(at: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if at.text() == "kubernetes.io/legacy-unknown" {
        let detail = "the legacy signerName is not allowed via this API version";
        return causes.invalid(at, detail);
    }
    signer_name(at, causes);
}

/// Validates the name of a signer.
pub(super) fn signer_name(at: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let mut invalid = |value: &str, detail: &str| {
        causes.0.push(Cause::invalid(&at.path, value, detail));
    };
    if at.text().is_empty() {
        return causes.required(at, "");
    }
    let parts: Vec<&str> = at.text().split('/').collect();
    let [domain, path] = parts[..] else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return invalid(at.text(), detail);
    };
    let bad = |label: &&str| name::dns_label("label", label).is_err();
    if let Some(label) = domain.split('.').find(bad) {
        let detail = format!("validating label {label:?}: {}", meta::LABEL);
        invalid(domain, &detail);
    }
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        invalid(domain, detail);
    }
    let bad = |label: &&str| name::dns_subdomain("label", label).is_err();
    if let Some(label) = path.split('.').find(bad) {
        let detail = format!("validating label {label:?}: {}", meta::SUBDOMAIN);
        invalid(path, &detail);
    }
}

/// The conditions of a type.
fn of_type<'a>(object: &'a Object, kind: &str) -> Vec<&'a Value> {
    let list = json::at(object, CONDITIONS).and_then(Value::as_array);
    let list = list.into_iter().flatten();
    list.filter(|condition| condition["type"] == kind).collect()
}

/// Validates a change of the status or of the approval.
pub(crate) fn status(before: &Object, after: &Object, approval: bool, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let status = FieldValue::field(after, "status");
    let twice = |object, kind| of_type(object, kind).len() > 1;
    let mut seen = HashSet::new();
    for condition in status.get("conditions").items() {
        let (kind, state) = (condition.get("type"), condition.get("status"));
        if kind.text().is_empty() {
            causes.required(&kind, "");
        }
        if state.text().is_empty() {
            causes.required(&state, "");
        } else if ALWAYS_TRUE.contains(&kind.text()) {
            causes.one_of(&state, &["True"]);
        } else {
            causes.one_of(&state, &["False", "True", "Unknown"]);
        }
        if !seen.insert(kind.text()) && !twice(before, kind.text()) {
            causes.duplicate(&kind);
        }
        let other = match kind.text() {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => continue,
        };
        if seen.contains(other) {
            let [first, last] = [other, kind.text()].map(condition_path);
            let both = format!("{{{first}, {last}}}");
            let detail = format!("must specify at most one of: `{first}`, `{last}`");
            causes.0.push(Cause::invalid(CONDITIONS, both, &detail));
        }
    }
    for kind in ALWAYS_TRUE {
        let (old, new) = (of_type(before, kind), of_type(after, kind));
        let mut forbidden = |what: &str| {
            let detail = format!("updates may not {what} a condition of type {kind:?}");
            causes.0.push(Cause::forbidden(CONDITIONS, &detail));
        };
        if new.len() < old.len() {
            forbidden("remove");
        } else if !approval && kind != "Failed" && new.len() > old.len() {
            forbidden("add");
        }
    }
    certificate(before, &status.get("certificate"), causes);
}

/// The path of a condition that is identified by its type.
fn condition_path(kind: &str) -> String {
    format!("conditions[{{\"type\": {kind:?}}}]")
}

/// Requires that a certificate is not changed after it is set.
fn certificate(before: &Object, new: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let old = json::text(before, "status.certificate");
    if new.text() == old {
        return;
    }
    let text = decoded(new);
    if let Some(problem) = (!text.is_empty())
        .then(|| pem::certificates(&text))
        .flatten()
    {
        let shown = "<certificate data>";
        causes.0.push(Cause::invalid(&new.path, shown, &problem));
    }
    if !old.is_empty() {
        let detail = "updates may not modify existing certificate content";
        causes.forbidden(new, detail);
    }
}
