//! CertificateSigningRequests. The controllers approve requests of kubelets for client
//! certificates, sign approved requests for Kubernetes' own signers, and delete old requests,
//! including PodCertificateRequests.

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
