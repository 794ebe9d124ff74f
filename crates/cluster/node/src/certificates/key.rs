//! Generates the keys of pods, and requests that are signed with these keys.

use std::fmt;

use p521::ecdsa::signature::Signer as _;
use ring::{
    rand::{SecureRandom as _, SystemRandom},
    rsa::KeyPair as RsaKeyPair,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
        EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    },
};
use rsa::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _};
use x509_cert::{
    AlgorithmIdentifier, SubjectPublicKeyInfo,
    der::{
        Any, Decode as _, Encode as _,
        asn1::{BitString, ObjectIdentifier},
    },
    name::Name,
    request::{CertReq, CertReqInfo, Version},
};

use crate::pem;

const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const ECDSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const ECDSA_SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4");
const RSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
/// The bytes before the key in the encoding (PKCS #8) of an Ed25519 key. ring writes the second
/// version of the encoding, which not all versions of OpenSSL read.
const ED25519_PKCS8: [u8; 16] = [
    0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
];

/// A private key in PEM. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PrivateKey(pub(super) String);

impl PrivateKey {
    /// Returns the key in PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

/// A new key.
#[derive(Debug)]
pub(super) struct NewKey {
    pub(super) private: PrivateKey,
    /// An empty certificate request, which is signed with the key.
    pub(super) request: Vec<u8>,
}

/// The reason why a key cannot be generated.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    #[error("unknown key type {0:?}")]
    Unknown(String),
    #[error("the key cannot be generated")]
    Generate,
    #[error("the key cannot be encoded: {0}")]
    Encode(#[from] x509_cert::der::Error),
}

/// Errors of ring and of the key formats do not contain their causes.
fn failed<E>(_: E) -> KeyError {
    KeyError::Generate
}

/// Generates a key of a type of the Kubernetes API. Takes seconds for RSA.
pub(super) fn generate(kind: &str) -> Result<NewKey, KeyError> {
    match kind {
        "RSA3072" => rsa(3072),
        "RSA4096" => rsa(4096),
        "ECDSAP256" => ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING, P256, ECDSA_SHA256),
        "ECDSAP384" => ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING, P384, ECDSA_SHA384),
        "ECDSAP521" => p521(),
        "ED25519" => ed25519(),
        _ => Err(KeyError::Unknown(kind.to_owned())),
    }
}

fn rsa(bits: usize) -> Result<NewKey, KeyError> {
    let key = rsa::PrivateKey::new(&mut rand::rng(), bits).map_err(failed)?;
    let pkcs8 = key.to_pkcs8_der().map_err(failed)?;
    let public = key.to_public_key().to_public_key_der().map_err(failed)?;
    let signer = RsaKeyPair::from_pkcs8(pkcs8.as_bytes()).map_err(failed)?;
    let sign = |message: &[u8]| {
        let mut signature = vec![0; signer.public().modulus_len()];
        let random = SystemRandom::new();
        let signed = signer.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature);
        signed.map_err(failed).map(|()| signature)
    };
    let algorithm = algorithm(RSA_SHA256, Some(Any::null()));
    let public = SubjectPublicKeyInfo::from_der(public.as_bytes())?;
    new_key(pkcs8.as_bytes(), public, algorithm, sign)
}

fn ecdsa(
    method: &'static EcdsaSigningAlgorithm,
    curve: ObjectIdentifier,
    signature: ObjectIdentifier,
) -> Result<NewKey, KeyError> {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(method, &random).map_err(failed)?;
    let signer = EcdsaKeyPair::from_pkcs8(method, pkcs8.as_ref(), &random).map_err(failed)?;
    let sign = |message: &[u8]| {
        let signature = signer.sign(&random, message).map_err(failed)?;
        Ok(signature.as_ref().to_vec())
    };
    let public = SubjectPublicKeyInfo {
        algorithm: algorithm(EC, Some(Any::encode_from(&curve)?)),
        subject_public_key: BitString::from_bytes(signer.public_key().as_ref())?,
    };
    new_key(pkcs8.as_ref(), public, algorithm(signature, None), sign)
}

fn p521() -> Result<NewKey, KeyError> {
    use p521::{
        ecdsa::{DerSignature, SigningKey},
        elliptic_curve::Generate as _,
        pkcs8::{EncodePrivateKey as _, EncodePublicKey as _},
    };
    let key = SigningKey::generate_from_rng(&mut rand::rng());
    let pkcs8 = key.to_pkcs8_der().map_err(failed)?;
    let public = key.verifying_key().to_public_key_der().map_err(failed)?;
    let sign = |message: &[u8]| {
        let signature: DerSignature = key.try_sign(message).map_err(failed)?;
        Ok(signature.as_bytes().to_vec())
    };
    let public = SubjectPublicKeyInfo::from_der(public.as_bytes())?;
    new_key(
        pkcs8.as_bytes(),
        public,
        algorithm(ECDSA_SHA512, None),
        sign,
    )
}

fn ed25519() -> Result<NewKey, KeyError> {
    let mut seed = [0; 32];
    SystemRandom::new().fill(&mut seed).map_err(failed)?;
    let signer = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(failed)?;
    let pkcs8 = [ED25519_PKCS8.as_slice(), &seed].concat();
    let public = SubjectPublicKeyInfo {
        algorithm: algorithm(ED25519, None),
        subject_public_key: BitString::from_bytes(signer.public_key().as_ref())?,
    };
    let sign = |message: &[u8]| Ok(signer.sign(message).as_ref().to_vec());
    new_key(&pkcs8, public, algorithm(ED25519, None), sign)
}

fn algorithm(oid: ObjectIdentifier, parameters: Option<Any>) -> AlgorithmIdentifier {
    AlgorithmIdentifier { oid, parameters }
}

fn new_key(
    pkcs8: &[u8],
    public_key: SubjectPublicKeyInfo,
    algorithm: AlgorithmIdentifier,
    sign: impl Fn(&[u8]) -> Result<Vec<u8>, KeyError>,
) -> Result<NewKey, KeyError> {
    let info = CertReqInfo {
        version: Version::V1,
        subject: Name::default(),
        public_key,
        attributes: Default::default(),
    };
    let signature = BitString::from_bytes(&sign(&info.to_der()?)?)?;
    let request = CertReq {
        info,
        algorithm,
        signature,
    };
    Ok(NewKey {
        private: PrivateKey(pem::block("PRIVATE KEY", pkcs8)),
        request: request.to_der()?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rcgen::KeyPair;

    use super::*;

    #[test]
    fn keys_are_read_by_others() {
        for kind in ["RSA3072", "ECDSAP256", "ECDSAP384", "ED25519"] {
            let key = generate(kind).unwrap();
            let read = KeyPair::from_pem(key.private.pem()).unwrap();
            let request = CertReq::from_der(&key.request).unwrap();
            assert_eq!(
                request.info.public_key.to_der().unwrap(),
                rcgen::PublicKeyData::subject_public_key_info(&read),
                "{kind}"
            );
            assert_eq!(request.info.subject, Name::default());
        }
        assert!(matches!(generate("DSA"), Err(KeyError::Unknown(_))));
    }

    #[test]
    fn a_private_key_is_not_shown() {
        let key = generate("ED25519").unwrap();
        assert!(!format!("{key:?}").contains("BEGIN"));
    }
}
