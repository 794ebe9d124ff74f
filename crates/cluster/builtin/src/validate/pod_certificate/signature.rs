//! Verifies that a certificate request is signed with the key that it contains.

use p521::ecdsa::{DerSignature, VerifyingKey, signature::hazmat::PrehashVerifier as _};
use ring::{
    digest::{self, digest},
    signature::{self, UnparsedPublicKey, VerificationAlgorithm},
};
use x509_cert::{der::asn1::ObjectIdentifier, request::CertReq};

use super::key::{self, Curve, KeyKind};
use crate::validate::trust_bundle::elements;

const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const ECDSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const ECDSA_SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4");
const RSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const RSA_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const RSA_SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");

/// The method that verifies a signature.
enum Method {
    Ring(&'static dyn VerificationAlgorithm),
    P521(&'static digest::Algorithm),
}

/// Returns true if a request is signed with its key. `der` is the encoded request.
pub(super) fn is_valid(der: &[u8], request: &CertReq) -> bool {
    let key = &request.info.public_key;
    let (Some(kind), Some(bytes), Some(signature)) = (
        key::kind(key),
        key.subject_public_key.as_bytes(),
        request.signature.as_bytes(),
    ) else {
        return false;
    };
    let parts = elements(der).unwrap_or_default();
    let (Some(signed), Some(method)) = (parts.first(), method(kind, request.algorithm.oid)) else {
        return false;
    };
    match method {
        Method::Ring(algorithm) => UnparsedPublicKey::new(algorithm, bytes)
            .verify(signed, signature)
            .is_ok(),
        Method::P521(algorithm) => {
            let hash = digest(algorithm, signed);
            let parts = (
                VerifyingKey::from_sec1_bytes(bytes),
                DerSignature::try_from(signature),
            );
            matches!(parts, (Ok(key), Ok(signature))
                if key.verify_prehash(hash.as_ref(), &signature).is_ok())
        }
    }
}

fn method(key: KeyKind, algorithm: ObjectIdentifier) -> Option<Method> {
    let ring: &'static dyn VerificationAlgorithm = match (key, algorithm) {
        (KeyKind::Ed25519, ED25519) => &signature::ED25519,
        (KeyKind::Ec(Curve::P256), ECDSA_SHA256) => &signature::ECDSA_P256_SHA256_ASN1,
        (KeyKind::Ec(Curve::P256), ECDSA_SHA384) => &signature::ECDSA_P256_SHA384_ASN1,
        (KeyKind::Ec(Curve::P384), ECDSA_SHA256) => &signature::ECDSA_P384_SHA256_ASN1,
        (KeyKind::Ec(Curve::P384), ECDSA_SHA384) => &signature::ECDSA_P384_SHA384_ASN1,
        (KeyKind::Ec(Curve::P521), ECDSA_SHA256) => return Some(Method::P521(&digest::SHA256)),
        (KeyKind::Ec(Curve::P521), ECDSA_SHA384) => return Some(Method::P521(&digest::SHA384)),
        (KeyKind::Ec(Curve::P521), ECDSA_SHA512) => return Some(Method::P521(&digest::SHA512)),
        (KeyKind::Rsa { .. }, RSA_SHA256) => &signature::RSA_PKCS1_2048_8192_SHA256,
        (KeyKind::Rsa { .. }, RSA_SHA384) => &signature::RSA_PKCS1_2048_8192_SHA384,
        (KeyKind::Rsa { .. }, RSA_SHA512) => &signature::RSA_PKCS1_2048_8192_SHA512,
        _ => return None,
    };
    Some(Method::Ring(ring))
}
