//! The kinds of public keys.

use x509_cert::{SubjectPublicKeyInfo, der::asn1::ObjectIdentifier};

const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const CURVES: [(ObjectIdentifier, Curve); 4] = [
    (ObjectIdentifier::new_unwrap("1.3.132.0.33"), Curve::P224),
    (
        ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7"),
        Curve::P256,
    ),
    (ObjectIdentifier::new_unwrap("1.3.132.0.34"), Curve::P384),
    (ObjectIdentifier::new_unwrap("1.3.132.0.35"), Curve::P521),
];

/// A curve of the NIST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    P224,
    P256,
    P384,
    P521,
}

/// The kind of a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Ed25519,
    Ec(Curve),
    Rsa {
        /// The size of the modulus.
        bits: usize,
    },
    Other,
}

/// The kind of a key; `None` if the key is malformed.
pub(super) fn kind(key: &SubjectPublicKeyInfo) -> Option<KeyKind> {
    let bytes = key.subject_public_key.as_bytes()?;
    match key.algorithm.oid {
        ED25519 => (bytes.len() == 32).then_some(KeyKind::Ed25519),
        EC => {
            let id: ObjectIdentifier = key.algorithm.parameters.as_ref()?.decode_as().ok()?;
            let (_, curve) = CURVES.iter().find(|(known, _)| *known == id)?;
            Some(KeyKind::Ec(*curve))
        }
        RSA => modulus_bits(bytes).map(|bits| KeyKind::Rsa { bits }),
        _ => Some(KeyKind::Other),
    }
}

/// The size of the modulus of an RSA key, in whole bytes.
fn modulus_bits(key: &[u8]) -> Option<usize> {
    let (modulus, is_positive) = yasna::parse_der(key, |reader| {
        reader.read_sequence(|reader| {
            let modulus = reader.next().read_bigint_bytes()?;
            reader.next().read_bigint_bytes()?;
            Ok(modulus)
        })
    })
    .ok()?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    is_positive.then_some(modulus.len().saturating_sub(zeros).saturating_mul(8))
}
