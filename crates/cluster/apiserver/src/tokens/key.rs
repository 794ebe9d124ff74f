//! The key that signs service account tokens: ECDSA on the curve P-256
//! (`ES256`), implemented by ring.

use std::{fmt, path::Path, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
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
/// The file of the key that signed tokens before, which is optional.
const PREVIOUS_FILE: &str = "service-account-previous.key";
/// Size of a point on the curve in bytes: 4, then x and y.
const POINT_LENGTH: usize = 65;

/// The key that signs service account tokens. Cheap to clone.
#[derive(Clone)]
pub struct TokenKey(Arc<Inner>);

struct Inner {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    /// The public key of this key, and of the previous key.
    public: Vec<PublicKey>,
    verified: Verified,
}

/// A key whose tokens are accepted.
struct PublicKey {
    /// Identifies the key in tokens.
    id: String,
    /// The point on the curve.
    point: Vec<u8>,
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
        Self::of(&pair, None)
            .ok_or_else(|| TlsError::Certificate("no signing key could be made".into()))
    }

    /// Loads the key from a directory (`service-account.key`, mode 0600) or creates it there. If
    /// `service-account-previous.key` exists, tokens of this key are also accepted.
    ///
    /// # Errors
    /// The directory cannot be used, or a stored key is damaged.
    pub fn load_or_create(dir: &Path) -> Result<Self, TlsError> {
        let previous = dir.join(PREVIOUS_FILE);
        let previous = previous.exists().then(|| read(&previous)).transpose()?;
        let path = dir.join(FILE);
        let pair = match path.exists() {
            true => read(&path)?,
            false => {
                tls::create_dir(dir)?;
                let pair = KeyPair::generate()?;
                tls::write_private(&path, &pair.serialize_pem())?;
                pair
            }
        };
        Self::of(&pair, previous.as_ref()).ok_or(TlsError::TokenKey { path })
    }

    /// Loads a key from a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, or does not contain a key on the curve P-256.
    pub fn load(path: &Path) -> Result<Self, TlsError> {
        Self::of(&read(path)?, None).ok_or_else(|| TlsError::TokenKey {
            path: path.to_owned(),
        })
    }

    fn of(pair: &KeyPair, previous: Option<&KeyPair>) -> Option<Self> {
        let random = SystemRandom::new();
        let private = pair.serialize_der();
        let signing = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let public = [Some(pair), previous].into_iter().flatten();
        let public = public.map(PublicKey::of).collect();
        let pair = EcdsaKeyPair::from_pkcs8(signing, &private, &random).ok()?;
        (pair.public_key().as_ref().len() == POINT_LENGTH).then(|| {
            let verified = Verified::default();
            Self(Arc::new(Inner {
                pair,
                random,
                public,
                verified,
            }))
        })
    }

    /// Returns a signed token, or `None` if the machine has no source of
    /// randomness.
    pub(crate) fn sign(&self, claims: &Claims) -> Option<String> {
        self.signed(claims)
    }

    /// Returns the token of a service account for the Secret `secret`, or `None` if the machine has
    /// no source of randomness. The token does not expire; it is valid as long as the Secret
    /// contains it.
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
        let id = self.0.public.first().map(|key| &key.id);
        let header = json!({"alg": ALGORITHM, "kid": id});
        let claims = serde_json::to_vec(claims).ok()?;
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self.0.pair.sign(&self.0.random, token.as_bytes()).ok()?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Some(token)
    }

    /// Returns the claims of a token that was signed by this key or the previous key; `None` for
    /// any other token.
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
        if header.alg != ALGORITHM {
            return None;
        }
        let signature = decoded(signature)?;
        let named = |key: &&PublicKey| header.kid.as_ref().is_none_or(|id| *id == key.id);
        let mut keys = self.0.public.iter().filter(named);
        if !keys.any(|key| key.has_signed(signed, &signature)) {
            return None;
        }
        serde_json::from_slice(&decoded(claims)?).ok()
    }

    /// Returns the public keys as a JSON Web Key Set.
    pub(crate) fn public(&self) -> Value {
        let keys: Vec<_> = self.0.public.iter().map(PublicKey::web_key).collect();
        json!({"keys": keys})
    }

    /// Returns the algorithm's name.
    pub(crate) fn algorithm() -> &'static str {
        ALGORITHM
    }
}

impl PublicKey {
    fn of(pair: &KeyPair) -> Self {
        Self {
            id: URL_SAFE_NO_PAD.encode(Sha256::digest(pair.subject_public_key_info())),
            point: pair.public_key_raw().to_vec(),
        }
    }

    fn has_signed(&self, signed: &str, signature: &[u8]) -> bool {
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.point);
        public.verify(signed.as_bytes(), signature).is_ok()
    }

    /// The key as a JSON Web Key.
    fn web_key(&self) -> Value {
        let (x, y) = self.point[1..].split_at(POINT_LENGTH / 2);
        json!({
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": URL_SAFE_NO_PAD.encode(x),
            "y": URL_SAFE_NO_PAD.encode(y),
        })
    }
}

/// Reads a key on the curve P-256 from a PEM file.
fn read(path: &Path) -> Result<KeyPair, TlsError> {
    let pair = KeyPair::from_pem(&tls::read(path)?).ok();
    pair.filter(|pair| pair.is_compatible(&PKCS_ECDSA_P256_SHA256))
        .ok_or_else(|| TlsError::TokenKey {
            path: path.to_owned(),
        })
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

    #[test]
    fn tokens_of_the_previous_key_are_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let first = TokenKey::load_or_create(dir.path()).unwrap();
        let token = first.sign(&claims()).unwrap();
        let [path, previous] = [FILE, PREVIOUS_FILE].map(|file| dir.path().join(file));
        std::fs::rename(&path, &previous).unwrap();
        let second = TokenKey::load_or_create(dir.path()).unwrap();
        assert_eq!(second.verify(&token).as_deref(), Some(&bound()));
        let new = second.sign(&claims()).unwrap();
        assert_eq!(first.verify(&new), None);
        let ids = |key: &TokenKey| -> Vec<Value> {
            let set = key.public();
            let keys = set["keys"].as_array().unwrap().iter();
            keys.map(|key| key["kid"].clone()).collect()
        };
        assert_eq!(ids(&second)[1..], ids(&first));

        std::fs::remove_file(&previous).unwrap();
        let third = TokenKey::load_or_create(dir.path()).unwrap();
        assert_eq!(third.verify(&token), None);
        assert_eq!(third.verify(&new).as_deref(), Some(&bound()));
        let other = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        std::fs::write(&previous, other.serialize_pem()).unwrap();
        let error = TokenKey::load_or_create(dir.path()).unwrap_err();
        assert!(error.to_string().contains(PREVIOUS_FILE), "{error}");
    }
}
