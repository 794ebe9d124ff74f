//! Verifies that a certificate request is signed with the key that it contains.

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use yasna::models::ObjectIdentifier;

use super::{error::RequestError, parts::Parts};
use crate::distinguished_name::elements;

const EC_KEY: &[u64] = &[1, 2, 840, 10045, 2, 1];
const P256: &[u64] = &[1, 2, 840, 10045, 3, 1, 7];
const P384: &[u64] = &[1, 3, 132, 0, 34];
const RSA_KEY: &[u64] = &[1, 2, 840, 113549, 1, 1, 1];
const ED25519: &[u64] = &[1, 3, 101, 112];
const ECDSA_SHA256: &[u64] = &[1, 2, 840, 10045, 4, 3, 2];
const ECDSA_SHA384: &[u64] = &[1, 2, 840, 10045, 4, 3, 3];
const RSA_SHA256: &[u64] = &[1, 2, 840, 113549, 1, 1, 11];
const RSA_SHA384: &[u64] = &[1, 2, 840, 113549, 1, 1, 12];
const RSA_SHA512: &[u64] = &[1, 2, 840, 113549, 1, 1, 13];

/// An algorithm that ring verifies: key, curve, signature.
type Algorithm = (
    &'static [u64],
    Option<&'static [u64]>,
    &'static [u64],
    &'static (dyn VerificationAlgorithm + Sync),
);

const ALGORITHMS: [Algorithm; 8] = [
    (
        EC_KEY,
        Some(P256),
        ECDSA_SHA256,
        &signature::ECDSA_P256_SHA256_ASN1,
    ),
    (
        EC_KEY,
        Some(P256),
        ECDSA_SHA384,
        &signature::ECDSA_P256_SHA384_ASN1,
    ),
    (
        EC_KEY,
        Some(P384),
        ECDSA_SHA256,
        &signature::ECDSA_P384_SHA256_ASN1,
    ),
    (
        EC_KEY,
        Some(P384),
        ECDSA_SHA384,
        &signature::ECDSA_P384_SHA384_ASN1,
    ),
    (
        RSA_KEY,
        None,
        RSA_SHA256,
        &signature::RSA_PKCS1_2048_8192_SHA256,
    ),
    (
        RSA_KEY,
        None,
        RSA_SHA384,
        &signature::RSA_PKCS1_2048_8192_SHA384,
    ),
    (
        RSA_KEY,
        None,
        RSA_SHA512,
        &signature::RSA_PKCS1_2048_8192_SHA512,
    ),
    (ED25519, None, ED25519, &signature::ED25519),
];

pub(super) fn verify(parts: &Parts) -> Result<(), RequestError> {
    let unsupported = RequestError::Signature(
        "the algorithm is not supported: use ECDSA (P-256 or P-384), RSA (2048 bits or more) or Ed25519",
    );
    let found = (|| {
        let (key_algorithm, key) = key(&parts.public_key)?;
        let (kind, curve) = identifiers(&key_algorithm)?;
        let (signature_kind, _) = identifiers(&parts.algorithm)?;
        let is =
            |one: &ObjectIdentifier, wanted: &[u64]| *one == ObjectIdentifier::from_slice(wanted);
        let (.., algorithm) =
            ALGORITHMS
                .iter()
                .find(|(own_kind, own_curve, own_signature, _)| {
                    let same_curve = match (own_curve, &curve) {
                        (Some(own), Some(curve)) => is(curve, own),
                        (Some(_), None) => false,
                        (None, _) => true,
                    };
                    is(&kind, own_kind) && same_curve && is(&signature_kind, own_signature)
                })?;
        let signature = bits(&parts.signature)?;
        Some((UnparsedPublicKey::new(*algorithm, key), signature))
    })();
    let (key, signature) = found.ok_or(unsupported)?;
    key.verify(&parts.signed, &signature)
        .map_err(|_| RequestError::Signature("it was not made with the key of the request"))
}

/// The algorithm and the bits of a public key.
fn key(der: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut parts = elements(der).ok()?.into_iter();
    let (algorithm, key) = (parts.next()?, parts.next()?);
    Some((algorithm, bits(&key)?))
}

fn bits(der: &[u8]) -> Option<Vec<u8>> {
    let (bytes, length) = yasna::parse_der(der, |reader| reader.read_bitvec_bytes()).ok()?;
    (bytes.len().checked_mul(8) == Some(length)).then_some(bytes)
}

/// The identifier of an algorithm, and the identifier of its curve.
fn identifiers(der: &[u8]) -> Option<(ObjectIdentifier, Option<ObjectIdentifier>)> {
    let parts = elements(der).ok()?;
    let id = |der: &Vec<u8>| yasna::parse_der(der, |reader| reader.read_oid()).ok();
    Some((parts.first().and_then(id)?, parts.get(1).and_then(id)))
}
