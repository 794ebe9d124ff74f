//! Decides what a Secret with a token needs. Pure.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde::Deserialize;

/// The type of Secrets for service account tokens.
const TYPE: &str = "kubernetes.io/service-account-token";
/// The annotation with the name of the service account.
pub(super) const ACCOUNT: &str = "kubernetes.io/service-account.name";
/// The annotation with the UID of the service account.
pub(super) const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// The data key of the token.
pub(super) const TOKEN: &str = "token";
/// The data key of the API server's CA certificate.
pub(super) const CA: &str = "ca.crt";
/// The data key of the namespace.
pub(super) const NAMESPACE: &str = "namespace";

/// The fields of a Secret that the controller reads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct SecretFacts {
    r#type: String,
    metadata: Metadata,
    data: Option<BTreeMap<String, ByteString>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    annotations: Option<BTreeMap<String, String>>,
    deletion_timestamp: Option<String>,
}

impl SecretFacts {
    fn annotation(&self, name: &str) -> &str {
        let annotations = self.metadata.annotations.as_ref();
        annotations
            .and_then(|all| all.get(name))
            .map_or("", String::as_str)
    }

    /// Returns the name of the service account if the Secret is for a token.
    pub(super) fn account(&self) -> Option<&str> {
        let name = self.annotation(ACCOUNT);
        (self.r#type == TYPE && !name.is_empty()).then_some(name)
    }

    /// Returns true if the Secret is for the service account with this uid.
    pub(super) fn is_for(&self, uid: &str) -> bool {
        let own = self.annotation(ACCOUNT_UID);
        own.is_empty() || own == uid
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the data keys without a value. `certificate` is the CA certificate in PEM.
    pub(super) fn missing(&self, certificate: Option<&str>) -> Vec<&'static str> {
        let value = |key: &str| {
            let value = self.data.as_ref().and_then(|data| data.get(key));
            value.map_or(&[][..], |value| &value.0)
        };
        let keys = [
            (
                CA,
                certificate.is_some_and(|known| value(CA) != known.as_bytes()),
            ),
            (NAMESPACE, value(NAMESPACE).is_empty()),
            (TOKEN, value(TOKEN).is_empty()),
        ];
        let missing = keys.into_iter().filter(|(_, is_missing)| *is_missing);
        missing.map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn facts(value: Value) -> SecretFacts {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_secrets_of_the_type_are_for_an_account() {
        let annotations = json!({ACCOUNT: "a", ACCOUNT_UID: "u"});
        let of = |kind: &str| json!({"type": kind, "metadata": {"annotations": annotations}});
        assert_eq!(facts(of("Opaque")).account(), None);
        let secret = facts(of(TYPE));
        assert_eq!(secret.account(), Some("a"));
        assert!(secret.is_for("u") && !secret.is_for("v"));
        let new = facts(json!({"type": TYPE, "metadata": {"annotations": {ACCOUNT: "a"}}}));
        assert!(new.is_for("u") && !new.is_terminating());
        assert_eq!(facts(json!({"type": TYPE})).account(), None);
    }

    #[test]
    fn missing_values_are_filled_in() {
        assert_eq!(facts(json!({})).missing(Some("ca")), [CA, NAMESPACE, TOKEN]);
        assert_eq!(facts(json!({})).missing(None), [NAMESPACE, TOKEN]);
        let whole = facts(json!({"data": {CA: "Y2E=", NAMESPACE: "eA==", TOKEN: "eA=="}}));
        assert_eq!(whole.missing(Some("ca")), Vec::<&str>::new());
        assert_eq!(whole.missing(Some("new")), [CA]);
    }
}
