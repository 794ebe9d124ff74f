//! Signs certificates for requests.

use std::ops::Range;

use jiff::{Timestamp, tz::TimeZone};
use rcgen::SigningKey as _;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use yasna::{
    DERWriter, DERWriterSeq, Tag,
    models::ObjectIdentifier,
    tags::{TAG_GENERALIZEDTIME, TAG_UTCTIME},
};

use super::{error::RequestError, parts::invalid, read::CertificateRequest, usages::Usages};
use crate::{distinguished_name::elements, tls::Authority};

const ECDSA_SHA256: &[u64] = &[1, 2, 840, 10045, 4, 3, 2];
const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];
/// The first year that is not written with two digits.
const LONG_YEARS: i16 = 2050;
/// Bytes of a serial number. The highest bit is 0.
const SERIAL_BYTES: usize = 16;

impl Authority {
    /// Signs a certificate for a request. It has the subject, the alternative names and the key of
    /// the request, and is not a certificate authority. Returns the certificate in PEM.
    ///
    /// # Errors
    /// A usage is unknown, or the authority's key is not of the kind that
    /// [`Authority::load_or_create`] creates.
    pub fn sign_request(
        &self,
        request: &CertificateRequest,
        usages: &[String],
        validity: Range<Timestamp>,
    ) -> Result<String, RequestError> {
        let usages = Usages::read(usages)?;
        let failed = |problem: &str| RequestError::Signing(problem.to_owned());
        if self.key.algorithm() != &rcgen::PKCS_ECDSA_P256_SHA256 {
            return Err(failed(
                "the key of the authority is not for ECDSA with P-256",
            ));
        }
        let own = CertificateDer::from_pem_slice(self.ca_pem().as_bytes())
            .map_err(|_| failed("the certificate of the authority cannot be read"))?;
        let issuer = subject_of(&own).map_err(|_| failed("the authority has no subject"))?;
        let serial: [u8; SERIAL_BYTES] = rand::random();
        let signed = yasna::construct_der(|writer| {
            let parts = Certificate {
                request,
                usages: &usages,
                validity,
                issuer: &issuer,
                serial,
            };
            parts.write(writer);
        });
        let signature = self.key.sign(&signed);
        let signature = signature.map_err(|error| failed(&error.to_string()))?;
        let der = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&signed);
                write_algorithm(writer.next());
                let length = signature.len().saturating_mul(8);
                writer.next().write_bitvec_bytes(&signature, length);
            });
        });
        Ok(pem(&der))
    }
}

/// The subject of a certificate, encoded.
fn subject_of(certificate: &[u8]) -> yasna::ASN1Result<Vec<u8>> {
    let signed = elements(certificate)?.into_iter().next();
    let mut parts = elements(&signed.ok_or_else(invalid)?)?.into_iter();
    // The subject follows version, serial number, algorithm, issuer and validity.
    parts.nth(5).ok_or_else(invalid)
}

fn pem(der: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use std::fmt::Write as _;
    let encoded = STANDARD.encode(der);
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, next) = rest.split_at(rest.len().min(64));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
        rest = next;
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

fn id(numbers: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(numbers)
}

fn write_algorithm(writer: DERWriter<'_>) {
    writer.write_sequence(|writer| writer.next().write_oid(&id(ECDSA_SHA256)));
}

fn write_time(writer: DERWriter<'_>, at: Timestamp) {
    let at = at.to_zoned(TimeZone::UTC);
    let (tag, format) = match at.year() {
        1950..LONG_YEARS => (TAG_UTCTIME, "%y%m%d%H%M%SZ"),
        _ => (TAG_GENERALIZEDTIME, "%Y%m%d%H%M%SZ"),
    };
    let text = at.strftime(format).to_string();
    writer.write_tagged_implicit(tag, |writer| writer.write_bytes(text.as_bytes()));
}

/// The parts of a certificate.
struct Certificate<'a> {
    request: &'a CertificateRequest,
    usages: &'a Usages,
    validity: Range<Timestamp>,
    issuer: &'a [u8],
    serial: [u8; SERIAL_BYTES],
}

impl Certificate<'_> {
    fn write(&self, writer: DERWriter<'_>) {
        let request = self.request;
        let mut serial = self.serial;
        serial[0] &= 0x7f;
        writer.write_sequence(|writer| {
            let version = |writer: DERWriter<'_>| writer.write_u8(2);
            writer.next().write_tagged(Tag::context(0), version);
            writer.next().write_bigint_bytes(&serial, true);
            write_algorithm(writer.next());
            writer.next().write_der(self.issuer);
            writer.next().write_sequence(|writer| {
                write_time(writer.next(), self.validity.start);
                write_time(writer.next(), self.validity.end);
            });
            writer.next().write_der(&request.subject);
            writer.next().write_der(&request.public_key);
            writer.next().write_tagged(Tag::context(3), |writer| {
                writer.write_sequence(|writer| self.write_extensions(writer));
            });
        });
    }

    fn write_extensions(&self, writer: &mut DERWriterSeq<'_>) {
        let mut extension = |kind: &[u64], is_critical: bool, value: &[u8]| {
            writer.next().write_sequence(|writer| {
                writer.next().write_oid(&id(kind));
                if is_critical {
                    writer.next().write_bool(true);
                }
                writer.next().write_bytes(value);
            });
        };
        let usages = self.usages;
        if usages.bits != 0 {
            let (bytes, length) = usages.bit_string();
            let value = yasna::construct_der(|writer| writer.write_bitvec_bytes(&bytes, length));
            extension(KEY_USAGE, true, &value);
        }
        if !usages.identifiers.is_empty() {
            let value = yasna::construct_der(|writer| {
                writer.write_sequence(|writer| {
                    let all = usages.identifiers.iter();
                    all.for_each(|one| writer.next().write_oid(&id(one)));
                });
            });
            extension(EXTENDED_KEY_USAGE, false, &value);
        }
        let not_authority = yasna::construct_der(|writer| writer.write_sequence(|_| ()));
        extension(BASIC_CONSTRAINTS, true, &not_authority);
        if let Some(names) = &self.request.alternative_names {
            // An empty subject is encoded in two bytes.
            extension(ALTERNATIVE_NAMES, self.request.subject.len() <= 2, names);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rcgen::{CertificateParams, DnType, KeyPair};
    use rustls::pki_types::UnixTime;

    use super::*;
    use crate::certificate;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn unix(at: Timestamp) -> UnixTime {
        let seconds = at.as_second().unsigned_abs();
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
    }

    #[test]
    fn an_issued_certificate_authenticates_its_subject_while_it_is_valid() {
        let authority = Authority::ephemeral().unwrap();
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "team");
        params.distinguished_name.push(DnType::CommonName, "ana");
        let key = KeyPair::generate().unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let request = CertificateRequest::read(pem.as_bytes()).unwrap();
        let usages = ["digital signature", "client auth"].map(str::to_owned);
        let (start, end) = (at("2049-12-31T23:00:00Z"), at("2050-06-01T00:00:00Z"));
        let now = Timestamp::now();
        let valid_now = now..at("2050-06-01T00:00:00Z");
        let pem = authority
            .sign_request(&request, &usages, valid_now)
            .unwrap();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let verifier = authority.client_verifier().unwrap();
        let verify = |der: &CertificateDer<'_>, at| verifier.verify_client_cert(der, &[], unix(at));
        verify(&der, now).unwrap();
        let user = certificate::user(&der).unwrap();
        assert_eq!(user.name, "ana");
        assert_eq!(user.groups[0], "team");

        let pem = authority
            .sign_request(&request, &usages, start..end)
            .unwrap();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        assert!(verify(&der, now).is_err());
        verify(&der, at("2050-01-01T00:00:00Z")).unwrap();
        assert!(verify(&der, at("2050-06-02T00:00:00Z")).is_err());

        let server = ["server auth".to_owned()];
        let pem = authority.sign_request(&request, &server, now..end).unwrap();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        assert!(verify(&der, now).is_err(), "it is for servers only");
        let unknown = authority.sign_request(&request, &["x".to_owned()], now..end);
        assert_eq!(unknown, Err(RequestError::Usages(vec!["x".into()])));
    }
}
