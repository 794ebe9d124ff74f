//! CertificateSigningRequests: requests of kubelets for client certificates are
//! approved, approved requests for Kubernetes' own signers get a certificate, and old
//! requests are deleted.

mod age;
mod approve;
mod controller;
mod facts;
mod rules;
mod sign;
mod signer;

pub(crate) use controller::run;
pub use signer::{CertificateFacts, CertificateSigner, Signer};
