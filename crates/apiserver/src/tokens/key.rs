//! The key that signs service account tokens: ECDSA on the curve P-256
//! (`ES256`), implemented by ring.

use std::{fmt, path::Path, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PublicKeyData as _};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
        UnparsedPublicKey,
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{AnyClaims, Claims, Reference, SecretClaims, verified::Verified};
use crate::tls::{self, TlsError};

/// The algorithm's name in tokens.
const ALGORITHM: &str = "ES256";
/// The key's file in the cluster's certificate directory.
const FILE: &str = "service-account.key";
/// Size of a point on the curve in bytes: 4, then x and y.
const POINT_LENGTH: usize = 65;

/// The key that signs service account tokens. Cheap to clone.
#[derive(Clone)]
pub struct TokenKey(Arc<Inner>);

struct Inner {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    /// Identifies the key in tokens.
    id: String,
    verified: Verified,
}

/// Omits the key.
impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKey").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
}

impl TokenKey {
    /// Creates a key that exists only in memory.
    ///
    /// # Errors
    /// The machine has no source of randomness.
    pub fn ephemeral() -> Result<Self, TlsError> {
        let pair = KeyPair::generate()?;
        Self::of(&pair).ok_or_else(|| TlsError::Certificate("no signing key could be made".into()))
    }

    /// Loads the key from a directory (`service-account.key`, mode 0600) or
    /// creates it there.
    ///
    /// # Errors
    /// The directory cannot be used, or the stored key is damaged.
    pub fn load_or_create(dir: &Path) -> Result<Self, TlsError> {
        let path = dir.join(FILE);
        if path.exists() {
            return Self::load(&path);
        }
        tls::create_dir(dir)?;
        let pair = KeyPair::generate()?;
        let key = Self::of(&pair);
        tls::write_private(&path, &pair.serialize_pem())?;
        key.ok_or(TlsError::TokenKey { path })
    }

    /// Loads a key from a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, or contains no key on the curve P-256.
    pub fn load(path: &Path) -> Result<Self, TlsError> {
        let pair = KeyPair::from_pem(&tls::read(path)?).ok();
        pair.and_then(|pair| Self::of(&pair))
            .ok_or_else(|| TlsError::TokenKey {
                path: path.to_owned(),
            })
    }

    fn of(pair: &KeyPair) -> Option<Self> {
        let random = SystemRandom::new();
        let private = pair.serialize_der();
        let signing = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(pair.subject_public_key_info()));
        let pair = EcdsaKeyPair::from_pkcs8(signing, &private, &random).ok()?;
        (pair.public_key().as_ref().len() == POINT_LENGTH).then(|| {
            let verified = Verified::default();
            Self(Arc::new(Inner {
                pair,
                random,
                id,
                verified,
            }))
        })
    }

    /// Returns a signed token, or `None` if the machine has no source of
    /// randomness.
    pub(crate) fn sign(&self, claims: &Claims) -> Option<String> {
        self.signed(claims)
    }

    /// Returns the token of a service account that belongs into the Secret `secret`, or
    /// `None` if the machine has no source of randomness. It does not expire; it is valid
    /// as long as the Secret contains it.
    #[must_use]
    pub fn sign_for_secret(
        &self,
        namespace: &str,
        (account, account_uid): (&str, &str),
        secret: &str,
    ) -> Option<String> {
        let account = Reference {
            name: account.to_owned(),
            uid: account_uid.to_owned(),
        };
        self.signed(&SecretClaims::new(namespace, account, secret))
    }

    fn signed(&self, claims: &impl serde::Serialize) -> Option<String> {
        let header = json!({"alg": ALGORITHM, "kid": self.0.id});
        let claims = serde_json::to_vec(claims).ok()?;
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self.0.pair.sign(&self.0.random, token.as_bytes()).ok()?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Some(token)
    }

    /// Returns the claims of a token that this key signed; `None` for any other
    /// token.
    pub(crate) fn verify(&self, token: &str) -> Option<Arc<AnyClaims>> {
        self.0
            .verified
            .claims(token, || self.check_signature(token))
    }

    fn check_signature(&self, token: &str) -> Option<AnyClaims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&decoded(header)?).ok()?;
        let is_ours = header.kid.is_none_or(|id| id == self.0.id);
        if header.alg != ALGORITHM || !is_ours {
            return None;
        }
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.0.pair.public_key());
        public
            .verify(signed.as_bytes(), &decoded(signature)?)
            .ok()?;
        serde_json::from_slice(&decoded(claims)?).ok()
    }

    /// Returns the public key as a JSON Web Key Set.
    pub(crate) fn public(&self) -> Value {
        let (x, y) = self.0.pair.public_key().as_ref()[1..].split_at(POINT_LENGTH / 2);
        json!({"keys": [{
            "use": "sig",
            "kty": "EC",
            "kid": self.0.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": URL_SAFE_NO_PAD.encode(x),
            "y": URL_SAFE_NO_PAD.encode(y),
        }]})
    }

    /// Returns the algorithm's name.
    pub(crate) fn algorithm() -> &'static str {
        ALGORITHM
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::{super::Kubernetes, *};

    fn claims() -> Claims {
        let when = (Timestamp::from_second(1000).unwrap(), 600);
        Claims::new(Kubernetes::default(), vec!["x".into()], when, "id".into())
    }

    fn bound() -> AnyClaims {
        AnyClaims::Bound(Box::new(claims()))
    }

    #[test]
    fn only_tokens_of_the_key_are_accepted() {
        let key = TokenKey::ephemeral().unwrap();
        let token = key.sign(&claims()).unwrap();
        assert_eq!(key.verify(&token).as_deref(), Some(&bound()));
        assert_eq!(key.verify(&token).as_deref(), Some(&bound()));
        assert_eq!(TokenKey::ephemeral().unwrap().verify(&token), None);
        let [header, body, signature]: [&str; 3] =
            token.split('.').collect::<Vec<_>>().try_into().unwrap();
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let none = encode(&json!({"alg": "none"}));
        let hmac = encode(&json!({"alg": "HS256"}));
        let other = encode(&json!({"alg": ALGORITHM, "kid": "other"}));
        let mut forged = claims();
        forged.sub = "system:serviceaccount:kube-system:admin".into();
        let forged = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&forged).unwrap());
        for wrong in [
            format!("{none}.{body}."),
            format!("{none}.{body}.{signature}"),
            format!("{hmac}.{body}.{signature}"),
            format!("{other}.{body}.{signature}"),
            format!("{header}.{forged}.{signature}"),
            format!("{header}.{body}"),
            format!("{header}.{body}.{signature}."),
            format!("{header}.{body}.{signature}="),
            format!("{header}.{body}.{}", &signature[..signature.len() - 4]),
            String::new(),
            "..".into(),
        ] {
            assert_eq!(key.verify(&wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_tokens_do_not_panic(token in "[A-Za-z0-9_.-]{0,80}") {
            static KEY: std::sync::LazyLock<TokenKey> =
                std::sync::LazyLock::new(|| TokenKey::ephemeral().unwrap());
            prop_assert_eq!(KEY.verify(&token), None);
        }
    }

    #[test]
    fn the_key_is_created_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let first = TokenKey::load_or_create(dir.path()).unwrap();
        let token = first.sign(&claims()).unwrap();
        let second = TokenKey::load_or_create(dir.path()).unwrap();
        assert_eq!(second.verify(&token).as_deref(), Some(&bound()));
        assert_eq!(first.public(), second.public());
        let path = dir.path().join(FILE);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, "no key").unwrap();
        let error = TokenKey::load_or_create(dir.path()).unwrap_err();
        assert!(error.to_string().contains(FILE), "{error}");
        assert!(!format!("{first:?}").contains("kid"), "{first:?}");
    }
}
