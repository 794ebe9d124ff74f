//! Rules of CertificateSigningRequests, ClusterTrustBundles and PodCertificateRequests that depend
//! on the user or on the request in PEM. Kubernetes' admission checks the same rules.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use longshore_engine::{Dependency, Error, ReviewStage};
use longshore_model::{KindInfo, StatusCause};
use serde_json::Value;

use crate::{
    authorization::{Attributes, Authorizer, forbidden},
    call::Shared,
    certificate_request::{CertificateRequest, RequestError},
    status_error::StatusError,
    user::{MASTERS, User},
    webhooks::WriteRule,
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

/// The rules about a user's writes of these kinds.
pub(super) struct SignerRules {
    shared: Arc<Shared>,
    user: Arc<User>,
    kind: Arc<KindInfo>,
    subresource: String,
}

impl SignerRules {
    pub(super) fn of_write(
        (shared, user): (&Arc<Shared>, &Arc<User>),
        kind: &KindInfo,
        subresource: &str,
    ) -> Option<Self> {
        let concerned = *kind.gvk.group == *GROUP;
        // The content of new requests is checked for all users.
        let is_new = is_request(kind) && subresource.is_empty();
        let is_checked = is_new || !shared.authorizer.allows_everything(user);
        (concerned && is_checked).then(|| Self {
            shared: shared.clone(),
            user: user.clone(),
            kind: Arc::new(kind.clone()),
            subresource: subresource.to_owned(),
        })
    }
}

impl std::fmt::Debug for SignerRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignerRules")
            .field("user", &self.user)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl WriteRule for SignerRules {
    fn stage(&self) -> ReviewStage {
        ReviewStage::Validating
    }

    fn dependency(&self) -> Dependency {
        self.shared.authorizer.dependency()
    }

    fn check(&self, before: Option<&Value>, after: &Value) -> Result<(), Error> {
        let access = (&self.shared.authorizer, &*self.user);
        if before.is_none() && is_request(&self.kind) {
            check_new(after)?;
        }
        if access.0.allows_everything(access.1) {
            return Ok(());
        }
        match (&*self.kind.plural, &*self.subresource, before) {
            // The signer of a bundle cannot change.
            (BUNDLES, ..) => check_bundle(access, before.unwrap_or(after))?,
            (POD_REQUESTS, "status", Some(before)) => check_pod_signature(access, before, after)?,
            (PLURAL, "approval", Some(before)) => check_write(access, "approve", before)?,
            (PLURAL, "status", Some(before)) if !is_same_status(before, after) => {
                check_write(access, "sign", before)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Checks that a user who changes the status of a PodCertificateRequest may sign for its signer.
fn check_pod_signature(
    (authorizer, user): (&Authorizer, &User),
    before: &Value,
    after: &Value,
) -> Result<(), StatusError> {
    let signer = after["spec"]["signerName"].as_str().unwrap_or_default();
    if before["status"] == after["status"] || may(authorizer, user, "sign", signer) {
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
fn check_bundle(
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

/// Returns true if a user may act on a signer, or on all signers of its domain.
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

/// Checks the request in PEM of a new object. The validation of the object finds other errors.
fn check_new(object: &Value) -> Result<(), StatusError> {
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

/// Checks that a user may decide about requests of a signer, or sign them.
fn check_write(
    (authorizer, user): (&Authorizer, &User),
    verb: &str,
    before: &Value,
) -> Result<(), StatusError> {
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
