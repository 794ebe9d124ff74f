//! Validation of PodCertificateRequests, with which nodes request certificates for keys of pods,
//! and of the volumes that contain these certificates.

mod conditions;
mod key;
mod leaf;
mod signature;
mod status;
#[cfg(test)]
mod tests;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_model::{CauseList, StatusCause};
use x509_cert::{der::Decode as _, request::CertReq};

use super::{
    certificate::signer_name,
    field_value::{Causes, FieldValue},
    meta,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};
use key::{Curve, KeyKind};
pub(crate) use status::status;

/// The default of `spec.maxExpirationSeconds`: a day.
const DEFAULT_EXPIRATION: i64 = 24 * 60 * 60;
/// The minimum of `spec.maxExpirationSeconds`: an hour.
const MIN_EXPIRATION: i64 = 60 * 60;
/// The maximum of `spec.maxExpirationSeconds`: 91 days.
const MAX_EXPIRATION: i64 = 91 * 24 * 60 * 60;
/// The maximum of `spec.maxExpirationSeconds` for the signers of Kubernetes: a day.
const MAX_KUBERNETES_EXPIRATION: i64 = 24 * 60 * 60;
/// The maximum size of a request in bytes.
const MAX_REQUEST: usize = 10 * 1024;
/// The maximum length of the UID of an object.
const MAX_UID: usize = 128;
/// The maximum size of all annotations in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The key types of volumes.
const KEY_TYPES: &[&str] = &[
    "RSA3072",
    "RSA4096",
    "ECDSAP256",
    "ECDSAP384",
    "ECDSAP521",
    "ED25519",
];

/// Sets the defaults of a request.
pub(crate) fn fill(request: &mut Object) {
    let spec = json::child(request, "spec");
    json::default(spec, "maxExpirationSeconds", DEFAULT_EXPIRATION);
}

/// Validates a new request.
pub(crate) fn new_request(request: &Object, causes: &mut CauseList) {
    let (spec, causes) = (FieldValue::field(request, "spec"), &mut Causes(causes));
    let signer = spec.get("signerName");
    signer_name(&signer, causes);
    annotations(&spec.get("unverifiedUserAnnotations"), causes);
    for [name, uid] in [
        ["podName", "podUID"],
        ["serviceAccountName", "serviceAccountUID"],
        ["nodeName", "nodeUID"],
    ] {
        causes.subdomain(&spec.get(name));
        uid_of(&spec.get(uid), causes);
    }
    let (seconds, max) = (
        spec.get("maxExpirationSeconds"),
        max_expiration(signer.text()),
    );
    if !(MIN_EXPIRATION..=max).contains(&seconds.number().unwrap_or_default()) {
        let detail = format!("must be in the range [{MIN_EXPIRATION}, {max}]");
        causes.invalid(&seconds, &detail);
    }
    pkcs10(&spec.get("stubPKCS10Request"), causes);
}

/// Validates a change of a request: its spec is fixed.
pub(crate) fn update(before: &Object, after: &Object, causes: &mut CauseList) {
    let spec = |object| FieldValue::field(object, "spec");
    Causes(causes).immutable(&spec(before), &spec(after));
}

fn uid_of(uid: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let text = uid.text();
    if text.is_empty() {
        let detail = "must not be empty";
        causes.0.push(Cause::invalid(&uid.path, text, detail));
    }
    if text.len() > MAX_UID {
        causes.0.push(Cause::too_long(&uid.path, MAX_UID));
    }
}

/// The longest time for which certificates of a signer may be valid, in seconds.
fn max_expiration(signer: &str) -> i64 {
    let domain = signer.split('/').next().unwrap_or_default();
    match domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") {
        true => MAX_KUBERNETES_EXPIRATION,
        false => MAX_EXPIRATION,
    }
}

/// Validates the annotations that the author of a pod passes to the signer.
fn annotations(annotations: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let path = &annotations.path;
    let mut size = 0_usize;
    for (key, value) in annotations.entries() {
        size = size
            .saturating_add(key.len())
            .saturating_add(value.text().len());
        let key = key.to_lowercase();
        let before = causes.0.len();
        if key.is_empty() {
            causes.0.push(Cause::required(path, ""));
            continue;
        }
        meta::qualified(path, &key, causes.0);
        if causes.0.len() == before && !key.contains('/') {
            let detail = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            causes.0.push(Cause::invalid(path, key, detail));
        }
    }
    if size > MAX_ANNOTATIONS {
        causes.0.push(Cause::too_long(path, MAX_ANNOTATIONS));
    }
}

/// An error about a value that messages omit.
fn omitted(path: &str, detail: &str) -> StatusCause {
    let message = format!("Invalid value: {detail}");
    Cause::plain(path, "FieldValueInvalid", message)
}

fn decoded(request: &FieldValue<'_>) -> Vec<u8> {
    STANDARD.decode(request.text()).unwrap_or_default()
}

/// Validates the certificate request, which proves the possession of the key.
fn pkcs10(request: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if request.text().is_empty() {
        let detail =
            "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
        return causes.0.push(omitted("spec", detail));
    }
    let (der, path) = (decoded(request), &request.path);
    if der.len() > MAX_REQUEST {
        return causes.0.push(Cause::too_long(path, MAX_REQUEST));
    }
    let malformed = || omitted(path, "must be a valid PKCS#10 CSR");
    let Ok(parsed) = CertReq::from_der(&der) else {
        return causes.0.push(malformed());
    };
    let unsuitable = match key::kind(&parsed.info.public_key) {
        None => Some(malformed()),
        Some(KeyKind::Ec(Curve::P224)) => {
            let detail = "elliptic public keys must use curve P256, P384, or P521";
            Some(Cause::invalid(path, "curve P-224", detail))
        }
        Some(KeyKind::Rsa { bits }) if bits != 3072 && bits != 4096 => {
            let detail = "RSA keys must have modulus size 3072 or 4096";
            Some(Cause::invalid(path, format!("{bits}-bit modulus"), detail))
        }
        Some(KeyKind::Other) => {
            let detail = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";
            Some(omitted(path, detail))
        }
        Some(KeyKind::Ed25519 | KeyKind::Ec(_) | KeyKind::Rsa { .. }) => None,
    };
    if let Some(cause) = unsuitable {
        causes.0.push(cause);
    } else if !signature::is_valid(&der, &parsed) {
        causes.0.push(omitted(path, "invalid signature"));
    }
}

/// Validates a source of a volume with a certificate, except for its paths.
pub(super) fn projection(source: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let signer = source.get("signerName");
    signer_name(&signer, causes);
    annotations(&source.get("userAnnotations"), causes);
    causes.one_of(&source.get("keyType"), KEY_TYPES);
    let seconds = source.get("maxExpirationSeconds");
    let Some(number) = seconds.number() else {
        return;
    };
    if number < MIN_EXPIRATION {
        let detail = format!("if provided, maxExpirationSeconds must be >= {MIN_EXPIRATION}");
        causes.invalid(&seconds, &detail);
    }
    let max = max_expiration(signer.text());
    if number > max {
        let detail = format!("if provided, maxExpirationSeconds must be <= {max}");
        causes.invalid(&seconds, &detail);
    }
}
