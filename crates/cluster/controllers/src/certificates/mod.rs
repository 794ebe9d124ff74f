//! CertificateSigningRequests: requests of kubelets for client certificates are
//! approved, approved requests for Kubernetes' own signers get a certificate, and old
//! requests are deleted. Old PodCertificateRequests are deleted, too.

mod age;
mod approve;
mod controller;
mod facts;
mod pod_requests;
mod rules;
mod sign;
mod signer;

/// The API group of certificate requests.
const GROUP: &str = "certificates.k8s.io";

pub(crate) use controller::run;
pub(crate) use pod_requests::run as run_cleaner;
pub use signer::{CertificateFacts, CertificateSigner, Signer};
