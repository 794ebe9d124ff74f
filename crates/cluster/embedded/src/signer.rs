//! Signs certificate requests with the cluster's authority, and tokens with its key.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use longshore_apiserver::{Authority, CertificateRequest, TokenKey};
use longshore_controllers::{
    AccountTokenSigner, CertificateFacts, CertificateSigner, TokenSubject,
};

/// The authority of the endpoint. A cluster without endpoint creates one when it
/// signs its first request.
#[derive(Debug, Default)]
pub(crate) struct AuthoritySigner(OnceLock<Arc<Authority>>);

impl AuthoritySigner {
    pub(crate) fn of(authority: Option<&Arc<Authority>>) -> Self {
        match authority {
            Some(authority) => Self(OnceLock::from(authority.clone())),
            None => Self::default(),
        }
    }

    fn authority(&self) -> Result<&Authority, String> {
        if let Some(known) = self.0.get() {
            return Ok(known);
        }
        let made = Authority::ephemeral().map_err(|error| error.to_string())?;
        Ok(self.0.get_or_init(|| Arc::new(made)))
    }
}

fn parse(request: &[u8]) -> Result<CertificateRequest, String> {
    CertificateRequest::read(request).map_err(|error| error.to_string())
}

impl CertificateSigner for AuthoritySigner {
    fn read(&self, request: &[u8]) -> Result<CertificateFacts, String> {
        let request = parse(request)?;
        Ok(CertificateFacts {
            has_dns_names: request.dns_names > 0,
            has_ip_addresses: request.ip_addresses > 0,
            has_email_addresses: request.email_addresses > 0,
            has_uris: request.uris > 0,
            common_name: request.common_name,
            organizations: request.organizations,
        })
    }

    fn sign(
        &self,
        request: &[u8],
        usages: &[String],
        validity: Range<Timestamp>,
    ) -> Result<String, String> {
        let signed = self
            .authority()?
            .sign_request(&parse(request)?, usages, validity);
        signed.map_err(|error| error.to_string())
    }
}

/// Signs the tokens in Secrets with the key of the API server.
#[derive(Debug)]
pub(crate) struct KeySigner(pub(crate) TokenKey);

impl AccountTokenSigner for KeySigner {
    fn sign(&self, subject: &TokenSubject<'_>) -> Result<String, String> {
        let account = (subject.account, subject.account_uid);
        let token = self
            .0
            .sign_for_secret(subject.namespace, account, subject.secret);
        token.ok_or_else(|| "the machine has no source of randomness".to_owned())
    }
}
