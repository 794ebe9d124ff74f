//! The fields of Services and EndpointSlices that the node reads.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use serde::Deserialize;

/// The label of an EndpointSlice that names its Service.
pub(crate) const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// The default of `sessionAffinityConfig.clientIP.timeoutSeconds`.
const AFFINITY_SECONDS: u64 = 10_800;

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
    /// SCTP, or a protocol of a later API version.
    Other,
}

impl Protocol {
    pub(crate) fn of(name: Option<&str>) -> Self {
        match name {
            None | Some("TCP" | "") => Self::Tcp,
            Some("UDP") => Self::Udp,
            Some(_) => Self::Other,
        }
    }

    /// The name in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Other => "SCTP",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The kind of address at which clients find a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// The cluster IP.
    Cluster(Ipv4Addr),
    /// The addresses of the endpoints.
    Headless,
    /// The addresses of an external name.
    External(String),
    /// The Service has no IPv4 address.
    None,
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServicePort {
    /// Empty for the only port.
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    pub(crate) node_port: Option<u16>,
}

/// A Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service {
    pub(crate) uid: String,
    pub(crate) address: Address,
    pub(crate) ports: Vec<ServicePort>,
    /// The time for which a client's connections go to the same endpoint; `None` without affinity.
    pub(crate) affinity: Option<Duration>,
}

/// The addresses behind a port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) addresses: Vec<IpAddr>,
    /// The hostname, as a subdomain of the Service's name.
    pub(crate) hostname: Option<String>,
    pub(crate) ready: bool,
    /// Terminating, but still serving.
    pub(crate) draining: bool,
}

/// A port of an EndpointSlice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlicePort {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
}

/// An EndpointSlice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) ports: Vec<SlicePort>,
}

impl Slice {
    /// Returns the IPv4 addresses of the endpoints that `wanted` selects, at the port of the
    /// slice with this name and protocol.
    pub(crate) fn at<'a>(
        &'a self,
        port: &'a ServicePort,
        wanted: impl Fn(&Endpoint) -> bool + 'a,
    ) -> impl Iterator<Item = SocketAddr> + 'a {
        let numbers = self
            .ports
            .iter()
            .filter(|own| own.name == port.name && own.protocol == port.protocol)
            .map(|own| own.port);
        let addresses: Vec<IpAddr> = self
            .endpoints
            .iter()
            .filter(|endpoint| wanted(endpoint))
            .flat_map(|endpoint| endpoint.addresses.iter().copied())
            .filter(IpAddr::is_ipv4)
            .collect();
        numbers.flat_map(move |number| {
            let addresses = addresses.clone().into_iter();
            addresses.map(move |address| SocketAddr::new(address, number))
        })
    }
}

/// A Service as the API returns it.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(crate) struct RawService {
    spec: RawSpec,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawSpec {
    r#type: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<String>,
    external_name: Option<String>,
    ports: Option<Vec<RawPort>>,
    session_affinity: Option<String>,
    session_affinity_config: Option<RawAffinity>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawPort {
    name: Option<String>,
    protocol: Option<String>,
    port: Option<u16>,
    node_port: Option<u16>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawAffinity {
    #[serde(rename = "clientIP")]
    client_ip: Option<RawClient>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawClient {
    timeout_seconds: Option<u64>,
}

impl RawService {
    pub(crate) fn read(self, uid: &str) -> Service {
        let spec = self.spec;
        let address = match (&*spec.r#type, spec.cluster_ip.as_deref()) {
            ("ExternalName", _) => Address::External(spec.external_name.unwrap_or_default()),
            (_, None | Some("None" | "")) => Address::Headless,
            (_, Some(text)) => text.parse().map_or(Address::None, Address::Cluster),
        };
        let seconds = spec
            .session_affinity_config
            .and_then(|config| config.client_ip?.timeout_seconds)
            .unwrap_or(AFFINITY_SECONDS);
        let is_sticky = spec.session_affinity.as_deref() == Some("ClientIP");
        let port = |raw: RawPort| {
            Some(ServicePort {
                name: raw.name.unwrap_or_default(),
                protocol: Protocol::of(raw.protocol.as_deref()),
                port: raw.port?,
                node_port: raw.node_port.filter(|port| *port != 0),
            })
        };
        Service {
            uid: uid.to_owned(),
            address,
            ports: spec.ports.into_iter().flatten().filter_map(port).collect(),
            affinity: is_sticky.then(|| Duration::from_secs(seconds)),
        }
    }
}

/// An EndpointSlice as the API returns it.
#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RawSlice {
    address_type: String,
    endpoints: Option<Vec<RawEndpoint>>,
    ports: Option<Vec<RawPort>>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct RawEndpoint {
    addresses: Option<Vec<String>>,
    hostname: Option<String>,
    conditions: RawConditions,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct RawConditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

impl RawSlice {
    /// Reads the endpoints; a slice of names (`FQDN`) has none.
    pub(crate) fn read(self) -> Slice {
        if !matches!(&*self.address_type, "IPv4" | "IPv6") {
            return Slice::default();
        }
        let endpoint = |raw: RawEndpoint| {
            let conditions = raw.conditions;
            // Without a condition, consumers assume that the endpoint is ready.
            let ready = conditions.ready.unwrap_or(true);
            let addresses = raw.addresses.into_iter().flatten();
            Endpoint {
                addresses: addresses.filter_map(|text| text.parse().ok()).collect(),
                hostname: raw.hostname.filter(|name| !name.is_empty()),
                ready,
                draining: !ready
                    && conditions.terminating == Some(true)
                    && conditions.serving == Some(true),
            }
        };
        let port = |raw: RawPort| {
            Some(SlicePort {
                name: raw.name.unwrap_or_default(),
                protocol: Protocol::of(raw.protocol.as_deref()),
                port: raw.port?,
            })
        };
        Slice {
            endpoints: self.endpoints.into_iter().flatten().map(endpoint).collect(),
            ports: self.ports.into_iter().flatten().filter_map(port).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, from_value, json};

    use super::*;

    fn service(spec: Value) -> Service {
        from_value::<RawService>(json!({"spec": spec}))
            .unwrap()
            .read("u")
    }

    #[test]
    fn addresses_of_services() {
        let of = |spec| service(spec).address;
        assert_eq!(
            of(json!({"type": "ClusterIP", "clusterIP": "127.8.0.1"})),
            Address::Cluster(Ipv4Addr::new(127, 8, 0, 1))
        );
        assert_eq!(of(json!({"clusterIP": "None"})), Address::Headless);
        assert_eq!(of(json!({"clusterIP": "fd00::1"})), Address::None);
        assert_eq!(
            of(json!({"type": "ExternalName", "externalName": "a.example"})),
            Address::External("a.example".to_owned())
        );
    }

    #[test]
    fn affinity_has_a_default_time() {
        assert_eq!(service(json!({"sessionAffinity": "None"})).affinity, None);
        let default = service(json!({"sessionAffinity": "ClientIP"})).affinity;
        assert_eq!(default, Some(Duration::from_secs(10_800)));
        let config = json!({"clientIP": {"timeoutSeconds": 5}});
        let spec = json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": config});
        assert_eq!(service(spec).affinity, Some(Duration::from_secs(5)));
    }

    #[test]
    fn endpoints_without_conditions_are_ready() {
        let slice = json!({
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["127.16.0.1"]},
                {"addresses": ["127.16.0.2"], "conditions": {"ready": false}},
                {"addresses": ["127.16.0.3"],
                 "conditions": {"ready": false, "serving": true, "terminating": true}},
            ],
            "ports": [{"port": 80, "protocol": "TCP"}],
        });
        let slice = from_value::<RawSlice>(slice).unwrap().read();
        let states: Vec<_> = slice
            .endpoints
            .iter()
            .map(|endpoint| (endpoint.ready, endpoint.draining))
            .collect();
        assert_eq!(states, [(true, false), (false, false), (false, true)]);
        let other = json!({"addressType": "FQDN", "endpoints": [{"addresses": ["a.example"]}]});
        assert_eq!(
            from_value::<RawSlice>(other).unwrap().read(),
            Slice::default()
        );
    }
}
