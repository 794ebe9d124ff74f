//! Certificate requests (PKCS #10): reads and verifies them, and signs certificates for them.

mod error;
mod issue;
mod parts;
mod read;
mod signature;
mod usages;

pub use error::RequestError;
pub use read::CertificateRequest;
