//! Creates and reads PodCertificateRequests.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodCertificateProjection;
use longshore_client::{Cluster, Error, FieldSelector, Object, View, kinds::PodCertificateRequest};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::{Value, json};

use super::state::Outcome;
use crate::pem;

/// The pod whose certificates are requested.
#[derive(Debug, Clone)]
pub(super) struct Requester {
    pub(super) cluster: Cluster,
    pub(super) node: String,
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) uid: String,
    pub(super) account: String,
}

impl Requester {
    fn requests(&self) -> Result<View<PodCertificateRequest>, Error> {
        let view = self.cluster.podcertificaterequests();
        view.in_namespace(&self.namespace)
    }

    /// Returns the view of the requests for the pod.
    pub(super) fn own(&self) -> Result<View<PodCertificateRequest>, Error> {
        let of_pod = FieldSelector::everything().with("spec.podName", self.pod.clone());
        Ok(self.requests()?.fields(of_pod))
    }

    /// Creates a request. Returns its name and its creation time by the system's clock, which also
    /// determines the validity of certificates.
    pub(super) async fn create(
        &self,
        source: &PodCertificateProjection,
        pkcs10: &[u8],
    ) -> Result<(String, Timestamp), Error> {
        let accounts = self.cluster.serviceaccounts();
        let accounts = accounts.in_namespace(&self.namespace)?;
        let account = uid(accounts, "service account", &self.account).await?;
        let node = uid(self.cluster.nodes(), "node", &self.node).await?;
        let mut spec = json!({
            "signerName": source.signer_name,
            "podName": self.pod,
            "podUID": self.uid,
            "serviceAccountName": self.account,
            "serviceAccountUID": account,
            "nodeName": self.node,
            "nodeUID": node,
            "stubPKCS10Request": BASE64_STANDARD.encode(pkcs10),
        });
        if let Some(seconds) = source.max_expiration_seconds {
            spec["maxExpirationSeconds"] = seconds.into();
        }
        if let Some(annotations) = &source.user_annotations {
            spec["unverifiedUserAnnotations"] = json!(annotations);
        }
        let request = json!({
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "PodCertificateRequest",
            "metadata": {
                "generateName": "req-",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": self.pod, "uid": self.uid},
                ],
            },
            "spec": spec,
        });
        let made = self.requests()?.create(&request).await?;
        Ok((made.name().to_owned(), Timestamp::now()))
    }

    /// Reads the outcome of a request.
    pub(super) async fn outcome(&self, name: &str) -> Result<Outcome, Error> {
        match self.requests()?.find(name).await? {
            Some(item) => Ok(outcome(&item.raw()?)),
            None => Ok(Outcome::Missing),
        }
    }
}

/// Returns the UID of an object of the kind `what`.
async fn uid<K: Object>(view: View<K>, what: &str, name: &str) -> Result<String, Error> {
    let found = view.find(name).await?;
    let missing = || Error::Invalid(format!("the {what} {name:?} does not exist"));
    found
        .map(|item| item.meta().uid.clone())
        .ok_or_else(missing)
}

/// Returns the outcome of a request.
fn outcome(request: &Value) -> Outcome {
    let status = &request["status"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let time = |name: &str| status[name].as_str()?.parse::<Timestamp>().ok();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    for condition in conditions {
        let (reason, message) = (text(&condition["reason"]), text(&condition["message"]));
        match condition["type"].as_str() {
            Some("Denied") => return Outcome::Denied { reason, message },
            Some("Failed") => return Outcome::Failed { reason, message },
            Some("Issued") => {
                // The API server requires the times.
                if let (Some(refresh_at), Some(not_after)) =
                    (time("beginRefreshAt"), time("notAfter"))
                {
                    return Outcome::Issued {
                        chain: certificates(&text(&status["certificateChain"])),
                        not_before: time("notBefore").unwrap_or(Timestamp::MIN),
                        refresh_at,
                        not_after,
                    };
                }
            }
            _ => {}
        }
    }
    Outcome::Open
}

/// Returns the certificates of a chain in PEM, without text between them and without headers.
fn certificates(chain: &str) -> String {
    let without_headers: String = chain
        .lines()
        .filter(|line| !line.contains(':'))
        .flat_map(|line| [line, "\n"])
        .collect();
    CertificateDer::pem_slice_iter(without_headers.as_bytes())
        .flatten()
        .map(|certificate| pem::block("CERTIFICATE", &certificate))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_only_certificates() {
        let block = pem::block("CERTIFICATE", &[1, 2, 3]);
        let header = block.replacen("-----\n", "-----\nName: value\n\n", 1);
        let chain = format!("text: text\n{header}\nmore\n{block}");
        assert_eq!(certificates(&chain), format!("{block}{block}"));
    }

    #[test]
    fn outcomes() {
        assert_eq!(outcome(&json!({})), Outcome::Open);
        let issued = json!({"type": "Issued", "status": "True"});
        let block = pem::block("CERTIFICATE", &[1, 2, 3]);
        let status = json!({"conditions": [issued], "certificateChain": block,
            "notBefore": "1970-01-01T00:00:00Z", "beginRefreshAt": "1970-01-01T00:01:00Z", "notAfter": "1970-01-01T00:02:00Z"});
        let refresh_at = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_mins(1);
        assert_eq!(
            outcome(&json!({"status": status})),
            Outcome::Issued {
                chain: block,
                not_before: Timestamp::UNIX_EPOCH,
                refresh_at,
                not_after: refresh_at + jiff::SignedDuration::from_mins(1),
            }
        );
        let failed = json!({"type": "Failed", "reason": "A", "message": "b"});
        assert_eq!(
            outcome(&json!({"status": {"conditions": [failed]}})),
            Outcome::Failed {
                reason: "A".to_owned(),
                message: "b".to_owned()
            }
        );
    }
}
