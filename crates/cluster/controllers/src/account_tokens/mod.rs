//! Secrets of the type `kubernetes.io/service-account-token`: fills in a token of the
//! service account, and deletes them with it.

mod controller;
mod decide;
mod signer;

pub(crate) use controller::run;
pub use signer::{AccountTokenSigner, TokenSigner, TokenSubject};
