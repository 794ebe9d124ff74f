//! The names and addresses of a pod, to which ports are forwarded. Pure.

use std::net::IpAddr;

use serde::Deserialize;

/// The fields of a pod with its names and addresses.
#[derive(Debug, Default, Deserialize)]
struct Fields {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Debug, Default, Deserialize)]
struct Spec {
    hostname: Option<String>,
    subdomain: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    #[serde(default, rename = "podIPs")]
    pod_ips: Vec<Address>,
}

#[derive(Debug, Default, Deserialize)]
struct Address {
    #[serde(default)]
    ip: String,
}

/// The names and addresses of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct OwnNames(Fields);

impl OwnNames {
    /// Returns true if a host is the pod itself.
    pub(super) fn has(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let Self(Fields {
            metadata,
            spec,
            status,
        }) = self;
        if let Ok(address) = host.parse::<IpAddr>() {
            let addresses = status.pod_ips.iter().map(|address| address.ip.as_str());
            let mut addresses = addresses.chain(status.pod_ip.as_deref());
            return address.is_loopback()
                || address.is_unspecified()
                || addresses.any(|own| own.parse() == Ok(address));
        }
        let hostname = spec.hostname.as_deref().unwrap_or(&metadata.name);
        if ["", "localhost", metadata.name.as_str(), hostname].contains(&host.as_str()) {
            return true;
        }
        // The name in a headless Service, and what DNS appends to it.
        let own = match &spec.subdomain {
            Some(subdomain) => format!("{hostname}.{subdomain}"),
            None => return false,
        };
        let rest = host.strip_prefix(&own);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_has_loopback_and_its_own_names() {
        let names: OwnNames = serde_json::from_value(json!({
            "metadata": {"name": "run-worker-1-abcde"},
            "spec": {"hostname": "run-worker-1", "subdomain": "run"},
            "status": {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}, {"ip": "fd00::3"}]},
        }))
        .unwrap();
        for own in [
            "localhost",
            "LOCALHOST",
            "",
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "0.0.0.0",
            "10.1.2.3",
            "fd00:0::3",
            "run-worker-1-abcde",
            "run-worker-1",
            "run-worker-1.run",
            "run-worker-1.run.default.svc.cluster.local.",
        ] {
            assert!(names.has(own), "{own}");
        }
        for other in [
            "10.1.2.4",
            "run-worker-2",
            "run-worker-1.running",
            "example.com",
            "localhost.example",
            "run-worker-10.run",
        ] {
            assert!(!names.has(other), "{other}");
        }
        let bare: OwnNames = serde_json::from_value(json!({"metadata": {}})).unwrap();
        assert!(bare.has("localhost") && !bare.has("web"));
    }
}
