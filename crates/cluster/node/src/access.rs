//! Access of pods to the API by the means that clients expect in every cluster: the service
//! account's files, which are a volume in the pod's spec, and the environment variables of the
//! Service `kubernetes`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Volume};

/// The prefix of the name of the volume with the files.
const ACCOUNT_VOLUME: &str = "kube-api-access-";
/// The ConfigMap with the certificate of the API server's authority.
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";

/// The address of the API server for pods. A pod authenticates with a token of its own service
/// account, which the node requests from the server.
#[derive(Debug, Clone)]
pub struct ApiAccess {
    /// The host name or address.
    pub host: String,
    /// The TLS port.
    pub port: u16,
    /// The certificate of the API server's authority in PEM format.
    pub ca_pem: String,
}

impl ApiAccess {
    /// Returns the environment variables that every container gets.
    pub(crate) fn variables(&self) -> [(&'static str, String); 4] {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        [
            ("KUBERNETES_SERVICE_HOST", self.host.clone()),
            ("KUBERNETES_SERVICE_PORT", self.port.to_string()),
            ("KUBERNETES_SERVICE_PORT_HTTPS", self.port.to_string()),
            ("KUBERNETES_PORT", format!("tcp://{host}:{}", self.port)),
        ]
    }

    /// Returns the values of the ConfigMap [`ROOT_CA`]. The node already has them, so pods start
    /// without a request for the ConfigMap, even before it is published in a new namespace.
    pub(crate) fn root_ca(&self) -> BTreeMap<String, Vec<u8>> {
        [("ca.crt".to_owned(), self.ca_pem.clone().into_bytes())].into()
    }
}

/// Returns true if a volume has the files of the service account, added to the pod by the API
/// server or by the pod's author.
pub(crate) fn is_account_volume(volume: &Volume) -> bool {
    let sources = volume.projected.iter();
    let mut sources = sources.flat_map(|projected| projected.sources.iter().flatten());
    volume.name.starts_with(ACCOUNT_VOLUME)
        && sources.any(|source| {
            let token = source.service_account_token.as_ref();
            token.is_some_and(|token| token.audience.as_ref().is_none_or(String::is_empty))
        })
}

/// Returns the volume of a pod with the files of its service account.
pub(crate) fn account_volume(pod: &Pod) -> Option<&Volume> {
    let mut volumes = pod.spec.as_ref()?.volumes.iter().flatten();
    volumes.find(|volume| is_account_volume(volume))
}

/// The files of its service account that a pod gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccountFiles {
    /// None, because the pod cannot reach the API server or nothing can be mounted.
    Absent,
    /// All except the token, because the API server issues none.
    WithoutToken,
    /// All.
    Complete,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_volume_of_the_account_has_a_token_for_the_api_server() {
        let token =
            |audience: Value| json!({"serviceAccountToken": {"path": "t", "audience": audience}});
        for (name, source, expected) in [
            ("kube-api-access-x", token(Value::Null), true),
            ("kube-api-access-x", token("".into()), true),
            ("kube-api-access-x", token("vault".into()), false),
            (
                "kube-api-access-x",
                json!({"configMap": {"name": "kube-root-ca.crt"}}),
                false,
            ),
            ("other", token(Value::Null), false),
        ] {
            let volume = json!({"name": name, "projected": {"sources": [source]}});
            let volume: Volume = serde_json::from_value(volume).unwrap();
            assert_eq!(is_account_volume(&volume), expected, "{volume:?}");
        }
    }
}
