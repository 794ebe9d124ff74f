//! The claims of a service account token, with Kubernetes' names.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ISSUER, SECRET_ISSUER, refusal::Refusal};

/// Maximum time in seconds by which a token's start may be in the future, in case the machine's
/// clock was set back.
const BEGIN_LEEWAY: i64 = 60;

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    /// The audiences of the token.
    pub(crate) aud: Vec<String>,
    /// Expiry, in seconds since 1970.
    pub(crate) exp: i64,
    /// Time of issue, in seconds since 1970.
    pub(crate) iat: i64,
    /// The issuer.
    pub(crate) iss: String,
    /// The id of this token.
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) kubernetes: Kubernetes,
    /// Start of validity, in seconds since 1970.
    pub(crate) nbf: i64,
    /// The user name of the service account.
    pub(crate) sub: String,
}

/// The claims of a token: a bound token, or the token of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum AnyClaims {
    /// The claims of a token that was requested.
    Bound(Box<Claims>),
    /// The claims of the token in a Secret.
    OfSecret(SecretClaims),
}

/// The claims of the token in a Secret. The token does not expire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecretClaims {
    pub(crate) iss: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    pub(crate) namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    pub(crate) secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub(crate) account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub(crate) account_uid: String,
    pub(crate) sub: String,
}

impl SecretClaims {
    /// Creates the claims of the token in a Secret.
    pub(crate) fn new(namespace: &str, account: Reference, secret: &str) -> Self {
        Self {
            iss: SECRET_ISSUER.to_owned(),
            sub: user_name(namespace, &account.name),
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            account: account.name,
            account_uid: account.uid,
        }
    }

    /// Checks the claims that do not refer to objects.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.iss != SECRET_ISSUER {
            return Err(Refusal::Foreign);
        }
        if self.sub != user_name(&self.namespace, &self.account) {
            return Err(Refusal::Invalid("sub claim is invalid".into()));
        }
        Ok(())
    }
}

/// The service account of a token and the objects it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Kubernetes {
    pub(crate) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
    pub(crate) serviceaccount: Reference,
}

/// The name and uid of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// Returns the user name of a service account.
pub(crate) fn user_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

impl Claims {
    /// Creates the claims of a token that is valid for `seconds` from now.
    pub(crate) fn new(
        kubernetes: Kubernetes,
        audiences: Vec<String>,
        (now, seconds): (Timestamp, i64),
        id: String,
    ) -> Self {
        let now = now.as_second();
        Self {
            aud: audiences,
            exp: now.saturating_add(seconds),
            iat: now,
            iss: ISSUER.to_owned(),
            jti: id,
            nbf: now,
            sub: user_name(&kubernetes.namespace, &kubernetes.serviceaccount.name),
            kubernetes,
        }
    }

    /// Checks the claims that do not refer to objects: the issuer, the time, the subject, and that
    /// an element of `audiences` matches.
    pub(super) fn check(&self, now: Timestamp, audiences: &[String]) -> Result<(), Refusal> {
        let now = now.as_second();
        let account = &self.kubernetes.serviceaccount;
        if self.iss != ISSUER {
            return Err(Refusal::Foreign);
        }
        if now >= self.exp {
            return Err(Refusal::Invalid("service account token has expired".into()));
        }
        if self.nbf > now.saturating_add(BEGIN_LEEWAY) {
            return Err(Refusal::Invalid(
                "service account token is not valid yet".into(),
            ));
        }
        if self.sub != user_name(&self.kubernetes.namespace, &account.name) {
            return Err(Refusal::Invalid("claims are inconsistent".into()));
        }
        if !self.aud.iter().any(|audience| audiences.contains(audience)) {
            return Err(Refusal::Invalid(format!(
                "token audiences {:?} is invalid for the target audiences {audiences:?}",
                self.aud
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn issuer_time_subject_and_audience_are_checked() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let kubernetes = Kubernetes {
            namespace: "a".into(),
            serviceaccount: Reference {
                name: "b".into(),
                uid: "u".into(),
            },
            ..Kubernetes::default()
        };
        let claims = Claims::new(kubernetes, vec!["x".into()], (at(1000), 600), "id".into());
        assert_eq!(claims.sub, "system:serviceaccount:a:b");
        let own = ["x".to_owned()];
        let refused = |claims: &Claims, second, audiences: &[String]| match claims
            .check(at(second), audiences)
        {
            Ok(()) => "valid".to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        for (second, expected) in [
            (1000, "valid"),
            (1599, "valid"),
            (1600, "service account token has expired"),
            (950, "valid"),
            (900, "service account token is not valid yet"),
        ] {
            assert_eq!(refused(&claims, second, &own), expected, "{second}");
        }
        assert!(refused(&claims, 1000, &["y".into()]).contains("audiences"));
        let other = |change: &dyn Fn(&mut Claims)| {
            let mut other = claims.clone();
            change(&mut other);
            refused(&other, 1000, &own)
        };
        assert_ne!(other(&|claims| claims.iss = "https://x".into()), "valid");
        assert_ne!(
            other(&|claims| claims.sub = "system:serviceaccount:a:c".into()),
            "valid"
        );
        let forever = Claims {
            exp: i64::MAX,
            ..claims.clone()
        };
        assert_eq!(refused(&forever, 1000, &own), "valid");
    }
}
