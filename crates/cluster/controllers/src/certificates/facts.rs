//! The facts of a CertificateSigningRequest.

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequestSpec, CertificateSigningRequestStatus,
};
use longshore_client::{Error, Item, kinds::Any};
use longshore_model::time;
use serde::Deserialize;

/// A request.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Request {
    pub(super) signer: String,
    /// The user who made the request.
    pub(super) username: String,
    pub(super) usages: Vec<String>,
    pub(super) expiration_seconds: Option<i32>,
    /// The request in PEM.
    pub(super) pem: Vec<u8>,
    pub(super) is_issued: bool,
    pub(super) conditions: Vec<Condition>,
    pub(super) created: Option<Timestamp>,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Condition {
    pub(super) kind: String,
    pub(super) updated: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    creation_timestamp: Option<String>,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Any>) -> Result<Option<Self>, Error> {
        let Some(spec) = item.field::<CertificateSigningRequestSpec>(&["spec"])? else {
            return Ok(None);
        };
        let status = item.field::<CertificateSigningRequestStatus>(&["status"])?;
        let status = status.unwrap_or_default();
        let created = item.field::<Created>(&["metadata"])?;
        let created = created.and_then(|created| created.creation_timestamp);
        let conditions = status.conditions.unwrap_or_default().into_iter();
        let conditions = conditions.map(|condition| Condition {
            kind: condition.type_,
            updated: condition.last_update_time.map(|at| at.0),
        });
        Ok(Some(Self {
            signer: spec.signer_name,
            username: spec.username.unwrap_or_default(),
            usages: spec.usages.unwrap_or_default(),
            expiration_seconds: spec.expiration_seconds,
            pem: spec.request.0,
            is_issued: status.certificate.is_some_and(|bytes| !bytes.0.is_empty()),
            conditions: conditions.collect(),
            created: created.and_then(|created| time::parse(&created)),
        }))
    }

    pub(super) fn has(&self, kind: &str) -> bool {
        self.condition(kind).is_some()
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|one| one.kind == kind)
    }
}
