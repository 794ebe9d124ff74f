//! Reads certificate requests.

use rustls::pki_types::{CertificateSigningRequestDer, pem::PemObject as _};
use yasna::{ASN1Error, ASN1Result, Tag, models::ObjectIdentifier};

use super::{
    error::RequestError,
    parts::{Parts, invalid},
    signature,
};
use crate::distinguished_name::{COMMON_NAME, ORGANIZATION, elements, name_attributes};

/// The attribute of a request that contains extensions.
const EXTENSION_REQUEST: &[u64] = &[1, 2, 840, 113549, 1, 9, 14];
/// The extension with other names of the subject.
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];

/// A certificate request, whose signature is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The common name of the subject.
    pub common_name: String,
    /// The organizations of the subject.
    pub organizations: Vec<String>,
    /// The number of alternative DNS names.
    pub dns_names: usize,
    /// The number of alternative IP addresses.
    pub ip_addresses: usize,
    /// The number of alternative email addresses.
    pub email_addresses: usize,
    /// The number of alternative URIs.
    pub uris: usize,
    /// The subject, encoded.
    pub(super) subject: Vec<u8>,
    /// The public key with its algorithm, encoded.
    pub(super) public_key: Vec<u8>,
    /// The alternative names, encoded.
    pub(super) alternative_names: Option<Vec<u8>>,
}

impl CertificateRequest {
    /// Reads a request in PEM and verifies its signature.
    ///
    /// # Errors
    /// The request is malformed, or its signature is not valid.
    pub fn read(pem: &[u8]) -> Result<Self, RequestError> {
        let der =
            CertificateSigningRequestDer::from_pem_slice(pem).map_err(|_| RequestError::Pem)?;
        let parts = Parts::read(&der).map_err(malformed)?;
        signature::verify(&parts)?;
        parts.request().map_err(malformed)
    }
}

fn malformed(error: ASN1Error) -> RequestError {
    RequestError::Malformed(error.to_string())
}

impl Parts {
    fn request(self) -> ASN1Result<CertificateRequest> {
        let mut request = CertificateRequest {
            common_name: String::new(),
            organizations: Vec::new(),
            dns_names: 0,
            ip_addresses: 0,
            email_addresses: 0,
            uris: 0,
            alternative_names: None,
            public_key: self.public_key,
            subject: Vec::new(),
        };
        for (kind, value) in name_attributes(&self.subject)? {
            match kind.as_slice() {
                COMMON_NAME => request.common_name = value,
                ORGANIZATION => request.organizations.push(value),
                _ => {}
            }
        }
        request.subject = self.subject;
        if let Some(attributes) = &self.attributes
            && let Some(names) = alternative_names(attributes)?
        {
            request.count(&names)?;
            request.alternative_names = Some(names);
        }
        Ok(request)
    }
}

impl CertificateRequest {
    fn count(&mut self, names: &[u8]) -> ASN1Result<()> {
        for name in elements(names)? {
            // The tags of RFC 5280 for GeneralName: context-specific 1, 2, 6 and 7.
            let counter = match name.first() {
                Some(0x81) => &mut self.email_addresses,
                Some(0x82) => &mut self.dns_names,
                Some(0x86) => &mut self.uris,
                Some(0x87) => &mut self.ip_addresses,
                _ => return Err(invalid()),
            };
            *counter = counter.saturating_add(1);
        }
        Ok(())
    }
}

/// Returns the extension with the alternative names in the attributes.
fn alternative_names(attributes: &[u8]) -> ASN1Result<Option<Vec<u8>>> {
    let mut found = Vec::new();
    yasna::parse_der(attributes, |reader| {
        reader.read_tagged_implicit(Tag::context(0), |reader| {
            reader.read_set_of(|reader| {
                found.push(reader.read_der()?);
                Ok(())
            })
        })
    })?;
    let is = |der: &[u8], wanted: &[u64]| {
        let id = yasna::parse_der(der, |reader| reader.read_oid());
        id.is_ok_and(|id| id == ObjectIdentifier::from_slice(wanted))
    };
    for attribute in found {
        let parts = elements(&attribute)?;
        let [id, values] = parts.as_slice() else {
            return Err(invalid());
        };
        if !is(id, EXTENSION_REQUEST) {
            continue;
        }
        let mut lists = Vec::new();
        yasna::parse_der(values, |reader| {
            reader.read_set_of(|reader| {
                lists.push(reader.read_der()?);
                Ok(())
            })
        })?;
        for extension in elements(lists.first().ok_or_else(invalid)?)? {
            let parts = elements(&extension)?;
            // Between both is the flag for critical extensions.
            let (Some(id), Some(value)) = (parts.first(), parts.last()) else {
                return Err(invalid());
            };
            if is(id, ALTERNATIVE_NAMES) {
                return yasna::parse_der(value, |reader| reader.read_bytes()).map(Some);
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType, string::Ia5String};

    use super::*;

    #[test]
    fn a_request_is_read() {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "ana");
        params
            .distinguished_name
            .push(DnType::OrganizationName, "team:ü");
        params.subject_alt_names = vec![
            SanType::DnsName(Ia5String::try_from("a.example").unwrap()),
            SanType::IpAddress("127.0.0.1".parse().unwrap()),
            SanType::URI(Ia5String::try_from("a:b").unwrap()),
            SanType::Rfc822Name(Ia5String::try_from("a@b").unwrap()),
        ];
        let key = KeyPair::generate().unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let request = CertificateRequest::read(pem.as_bytes()).unwrap();
        assert_eq!(request.common_name, "ana");
        assert_eq!(request.organizations, ["team:ü"]);
        let counts = [
            request.dns_names,
            request.ip_addresses,
            request.uris,
            request.email_addresses,
        ];
        assert_eq!(counts, [1, 1, 1, 1]);
    }

    #[test]
    fn a_changed_request_is_refused() {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::default();
        let request = params.serialize_request(&key).unwrap();
        let mut der = request.der().to_vec();
        let at = der.windows(5).position(|part| part == b"rcgen").unwrap();
        der[at] = b'x';
        let parts = Parts::read(&der).unwrap();
        let error = signature::verify(&parts).unwrap_err().to_string();
        assert!(error.starts_with("unable to verify"), "{error}");
        assert_eq!(CertificateRequest::read(b"x"), Err(RequestError::Pem));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(parts) = Parts::read(&bytes) {
                let _ = signature::verify(&parts);
                let _ = parts.request();
            }
        }
    }
}
