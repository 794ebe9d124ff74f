//! Validation of the status of a request, which a signer writes once.

use jiff::{SignedDuration, Timestamp};
use longshore_model::{CauseList, StatusCause};
use serde_json::Value;
use x509_cert::{der::Decode as _, request::CertReq};

use super::{
    conditions, decoded,
    leaf::{self, Leaf},
    omitted,
};
use crate::{
    cause::Cause,
    json::Object,
    validate::{
        field_value::{Causes, FieldValue},
        pem,
    },
};

/// The conditions of a request that is decided.
const TYPES: [&str; 3] = ["Issued", "Denied", "Failed"];
/// The times of a certificate.
const TIMES: [&str; 3] = ["notBefore", "notAfter", "beginRefreshAt"];
/// The maximum size of `status.certificateChain` in bytes.
const MAX_CHAIN: usize = 100 * 1024;
/// The maximum difference between the beginning of the validity and the server's time.
const MAX_SKEW: SignedDuration = SignedDuration::from_mins(5);
const MIN_LIFETIME: SignedDuration = SignedDuration::from_hours(1);
/// The minimum time between the beginning or end of the validity and the renewal.
const REFRESH_MARGIN: SignedDuration = SignedDuration::from_mins(10);

/// Validates a change of the status at a time.
pub(crate) fn status(before: &Object, after: &Object, now: Timestamp, causes: &mut CauseList) {
    let old = FieldValue::field(before, "status");
    let new = FieldValue::field(after, "status");
    let known = causes.len();
    known_conditions(&new.get("conditions"), &mut Causes(causes));
    conditions::check(&new.get("conditions"), &mut Causes(causes));
    if causes.len() > known {
        return;
    }
    if TYPES.iter().any(|kind| has(&old, kind)) {
        if !is_same(&old, &new) {
            let detail = "immutable after PodCertificateRequest is issued, denied, or failed";
            causes.push(omitted("status", detail));
        }
    } else if has(&new, "Denied") || has(&new, "Failed") {
        if has_certificate(&new) {
            let detail = "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
            causes.push(omitted("status", detail));
        }
    } else if has(&new, "Issued") {
        let spec = FieldValue::field(before, "spec");
        issued(&spec, &new, now, &mut Causes(causes));
    } else if !is_same(&old, &new) {
        let detail =
            "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"";
        causes.push(omitted("status", detail));
    }
}

/// Checks that there is at most one condition, of a known type, which is true.
fn known_conditions(conditions: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let mut is_first = true;
    for (index, condition) in conditions.items().enumerate() {
        let at = |name: &str| {
            let path = format!("status.conditions.[{index}].{name}");
            condition.get(name).with_path(path)
        };
        if !TYPES.contains(&at("type").text()) {
            causes.not_supported(&at("type"), &TYPES);
            continue;
        }
        if !is_first {
            let detail = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            causes.invalid(&at("type"), detail);
        }
        is_first = false;
        causes.one_of(&at("status"), &["True"]);
    }
}

fn has(status: &FieldValue<'_>, kind: &str) -> bool {
    let mut conditions = status.get("conditions").items();
    conditions.any(|one| one.get("type").text() == kind && one.get("status").text() == "True")
}

fn has_certificate(status: &FieldValue<'_>) -> bool {
    !status.get("certificateChain").text().is_empty()
        || TIMES.iter().any(|time| status.get(time).is_set())
}

fn is_same(old: &FieldValue<'_>, new: &FieldValue<'_>) -> bool {
    let conditions = |status: &FieldValue<'_>| match status.get("conditions").value() {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    let text = |status: &FieldValue<'_>, name: &str| status.get(name).text().to_owned();
    conditions(old) == conditions(new)
        && text(old, "certificateChain") == text(new, "certificateChain")
        && TIMES.iter().all(|time| text(old, time) == text(new, time))
}

/// Validates the certificate that is issued for a request.
fn issued(spec: &FieldValue<'_>, status: &FieldValue<'_>, now: Timestamp, causes: &mut Causes<'_>) {
    let chain = status.get("certificateChain");
    if chain.text().len() > MAX_CHAIN {
        return causes.0.push(Cause::too_long(&chain.path, MAX_CHAIN));
    }
    let wrong = |detail: &str| Cause::invalid(&chain.path, chain.text(), detail);
    let (leaf, rest) = match pem::block(chain.text()) {
        None => {
            let detail = "issued certificate chain must contain at least one certificate";
            return causes.0.push(wrong(detail));
        }
        Some(("CERTIFICATE", der, rest)) => (Leaf::read(&der), rest),
        Some(_) => {
            let detail = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks";
            return causes.0.push(wrong(detail));
        }
    };
    let Some(leaf) = leaf else {
        let detail = "leaf certificate does not parse as valid X.509";
        return causes.0.push(wrong(detail));
    };
    let known = causes.0.len();
    for (name, detail) in leaf.bad_names() {
        causes.0.push(Cause::invalid(&chain.path, name, detail));
    }
    let request = CertReq::from_der(&decoded(&spec.get("stubPKCS10Request")));
    if request.is_ok_and(|request| request.info.public_key != leaf.key) {
        let detail = "leaf certificate was not issued to the requested public key";
        return causes.0.push(wrong(detail));
    }
    for (name, detail) in [
        (
            "notBefore",
            "must be present and consistent with the issued certificate",
        ),
        (
            "notAfter",
            "must be present and consistent with the issued certificate",
        ),
        (
            "beginRefreshAt",
            "must be present and in the range [notbefore+10min, notafter-10min]",
        ),
    ] {
        let time = status.get(name);
        if !time.is_set() {
            causes.required(&time, detail);
        }
    }
    if causes.0.len() > known {
        return;
    }
    if let Some(cause) = wrong_times(spec, status, &leaf, now) {
        return causes.0.push(cause);
    }
    let mut rest = rest;
    while let Some((kind, der, next)) = pem::block(rest) {
        if kind != "CERTIFICATE" {
            // The spelling of Kubernetes.
            let detail = "issued certificate chain must consist entirely of CERTFICATE PEM blocks";
            return causes.0.push(wrong(detail));
        }
        if !leaf::is_certificate(&der) {
            let detail = "intermediate certificate does not parse as valid X.509";
            return causes.0.push(wrong(detail));
        }
        rest = next;
    }
}

/// The first time of a certificate that is wrong.
fn wrong_times(
    spec: &FieldValue<'_>,
    status: &FieldValue<'_>,
    leaf: &Leaf,
    now: Timestamp,
) -> Option<StatusCause> {
    let [not_before, not_after, refresh] = TIMES.map(|name| status.get(name));
    let time = |at: &FieldValue<'_>| at.text().parse::<Timestamp>().ok();
    let wrong =
        |at: &FieldValue<'_>, detail: &str| Some(Cause::invalid(&at.path, at.value(), detail));
    if time(&not_before) != Some(leaf.not_before) {
        let detail = "must be set to the NotBefore time encoded in the leaf certificate";
        return wrong(&not_before, detail);
    }
    if leaf.not_before.duration_since(now).abs() >= MAX_SKEW {
        let detail = "must be set to within 5 minutes of kube-apiserver's current time";
        return wrong(&not_before, detail);
    }
    if time(&not_after) != Some(leaf.not_after) {
        let detail = "must be set to the NotAfter time encoded in the leaf certificate";
        return wrong(&not_after, detail);
    }
    let lifetime = leaf.not_after.duration_since(leaf.not_before);
    let wrong_lifetime = |detail: &str| {
        // Durations are shown in nanoseconds, limited to the range of a 64-bit number.
        let nanoseconds = i64::try_from(lifetime.as_nanos()).unwrap_or(i64::MAX);
        let path = status.get("certificateChain").path;
        Some(Cause::invalid(&path, nanoseconds, detail))
    };
    if lifetime < MIN_LIFETIME {
        return wrong_lifetime("leaf certificate lifetime must be >= 1 hour");
    }
    let max = spec
        .get("maxExpirationSeconds")
        .number()
        .unwrap_or_default();
    if lifetime > SignedDuration::from_secs(max) {
        return wrong_lifetime(&format!(
            "leaf certificate lifetime must be <= spec.maxExpirationSeconds ({max})"
        ));
    }
    let at = time(&refresh)?;
    if at.duration_since(leaf.not_before) < REFRESH_MARGIN {
        return wrong(
            &refresh,
            "must be at least 10 minutes after status.notBefore",
        );
    }
    if leaf.not_after.duration_since(at) < REFRESH_MARGIN {
        return wrong(
            &refresh,
            "must be at least 10 minutes before status.notAfter",
        );
    }
    None
}
