//! Rules of CertificateSigningRequests, ClusterTrustBundles and PodCertificateRequests that depend
//! on the user or on the request in PEM, as Kubernetes' admission checks them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_engine::Subresource;
use longshore_model::{KindInfo, StatusCause};
use serde_json::Value;

use crate::{
    authorization::{Attributes, Authorizer, forbidden},
    certificate_request::{CertificateRequest, RequestError},
    status_error::StatusError,
    user::{MASTERS, User},
};

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
const BUNDLES: &str = "clustertrustbundles";
const POD_REQUESTS: &str = "podcertificaterequests";
/// Signs certificates of clients.
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

pub(super) fn is_request(kind: &KindInfo) -> bool {
    *kind.gvk.group == *GROUP && *kind.plural == *PLURAL
}

pub(super) fn is_bundle(kind: &KindInfo) -> bool {
    *kind.gvk.group == *GROUP && *kind.plural == *BUNDLES
}

pub(super) fn is_pod_request(kind: &KindInfo) -> bool {
    *kind.gvk.group == *GROUP && *kind.plural == *POD_REQUESTS
}

/// Checks that a user who changes the status of a PodCertificateRequest may sign for its
/// signer.
pub(super) fn check_pod_signature(
    (authorizer, user): (&Authorizer, &User),
    before: Option<&Value>,
    after: &Value,
) -> Result<(), StatusError> {
    let is_same = before.is_some_and(|before| before["status"] == after["status"]);
    let signer = after["spec"]["signerName"].as_str().unwrap_or_default();
    if is_same || may(authorizer, user, "sign", signer) {
        return Ok(());
    }
    let cause = StatusCause {
        reason: "FieldValueForbidden".into(),
        message: format!(
            "Forbidden: User {:?} is not permitted to \"sign\" for signer {signer:?}",
            user.name
        ),
        field: "spec.signerName".into(),
    };
    let name = after["metadata"]["name"].as_str().unwrap_or_default();
    let kind = "PodCertificateRequest";
    Err(StatusError::invalid_review(kind, GROUP, name, vec![cause]))
}

/// Checks that a user may publish certificates of a bundle's signer.
pub(super) fn check_bundle(
    (authorizer, user): (&Authorizer, &User),
    bundle: &Value,
) -> Result<(), StatusError> {
    let signer = bundle["spec"]["signerName"].as_str().unwrap_or_default();
    if signer.is_empty() || may(authorizer, user, "attest", signer) {
        return Ok(());
    }
    let name = bundle["metadata"]["name"].as_str().unwrap_or_default();
    let problem = format!("user not permitted to attest for signerName {signer:?}");
    Err(forbidden(GROUP, BUNDLES, name, &problem))
}

/// Whether a user may act on a signer, or on all signers of its domain.
fn may(authorizer: &Authorizer, user: &User, verb: &str, signer: &str) -> bool {
    let all = signer.split('/').next().map(|domain| format!("{domain}/*"));
    let allows = |name: &str| {
        let request = Attributes {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: "signers".to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        authorizer.decide(user, &request).allowed
    };
    allows(signer) || all.is_some_and(|all| allows(&all))
}

/// Checks the request in PEM of a new object. What else may be wrong with it is
/// found when the object is validated.
pub(super) fn check_new(object: &Value) -> Result<(), StatusError> {
    let spec = &object["spec"];
    let text = spec["request"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let Ok(pem) = STANDARD.decode(text) else {
        return Ok(());
    };
    match CertificateRequest::read(&pem) {
        Ok(request) if spec["signerName"] == CLIENT => {
            if request.organizations.iter().any(|group| group == MASTERS) {
                let problem = format!("use of {CLIENT} signer with {MASTERS} group is not allowed");
                return Err(forbidden(GROUP, PLURAL, name, &problem));
            }
            Ok(())
        }
        Ok(_) | Err(RequestError::Pem) => Ok(()),
        Err(error) => {
            let cause = StatusCause {
                reason: "FieldValueInvalid".into(),
                message: format!("Invalid value: {text:?}: {error}"),
                field: "spec.request".into(),
            };
            let kind = "CertificateSigningRequest";
            Err(StatusError::invalid_review(kind, GROUP, name, vec![cause]))
        }
    }
}

/// Checks that a user may decide about requests of a signer, or sign them. `after` is
/// the object that is written; `None` for a patch, which may write anything.
pub(super) fn check_write(
    (authorizer, user): (&Authorizer, &User),
    subresource: Subresource,
    before: &Value,
    after: Option<&Value>,
) -> Result<(), StatusError> {
    let verb = match subresource {
        Subresource::Approval => "approve",
        Subresource::Status => "sign",
        _ => return Ok(()),
    };
    if verb == "sign" && after.is_some_and(|after| is_same_status(before, after)) {
        return Ok(());
    }
    let signer = before["spec"]["signerName"].as_str().unwrap_or_default();
    if may(authorizer, user, verb, signer) {
        return Ok(());
    }
    let name = before["metadata"]["name"].as_str().unwrap_or_default();
    let problem = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(forbidden(GROUP, PLURAL, name, &problem))
}

fn is_same_status(before: &Value, after: &Value) -> bool {
    let (before, after) = (&before["status"], &after["status"]);
    ["certificate", "conditions"]
        .iter()
        .all(|field| before[field] == after[field])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changes_of_the_certificate_and_conditions_are_signatures() {
        let object = |certificate: &str| json!({"status": {"certificate": certificate}});
        assert!(is_same_status(&object("a"), &object("a")));
        assert!(!is_same_status(&object("a"), &object("b")));
        assert!(is_same_status(&json!({}), &json!({"status": {}})));
        assert!(!is_same_status(
            &json!({}),
            &json!({"status": {"conditions": [1]}})
        ));
    }
}
