//! The address that a task listens on: one of the pod's addresses, and a port.

use std::{fmt, net::IpAddr, str::FromStr};

use longshore_model::facts::{ContainerPort, Ip, PodFacts};

use crate::pod_error::PodError;

/// The pod address that goes into the cluster spec.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Address {
    /// `status.podIP`.
    #[default]
    PodIp,
    /// `status.hostIP`, the address that TensorFlow's `KubernetesClusterResolver`
    /// uses.
    HostIp,
    /// `hostname.subdomain.namespace.svc`, for pods behind a headless Service.
    Dns,
    /// The pod's host name without a domain, for peers that have it in `/etc/hosts`
    /// or share its subdomain.
    Hostname,
}

/// The IP family to use for pods or nodes with dual-stack addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Family {
    /// The primary address of the cluster.
    #[default]
    Primary,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// The port that the tasks listen on.
///
/// ```
/// use longshore_resolver::Port;
/// assert_eq!("2222".parse(), Ok(Port::Number(2222)));
/// assert_eq!("grpc".parse(), Ok(Port::Named("grpc".to_owned())));
/// assert_eq!(
///     "70000".parse::<Port>().unwrap_err().to_string(),
///     "invalid port \"70000\": give a number from 1 to 65535, or the name of a container's port"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Port {
    /// The same port number for every task.
    Number(u16),
    /// The container port with this name. With [`Address::HostIp`], its host port
    /// if it has one.
    Named(String),
}

/// The port that TensorFlow uses.
impl Default for Port {
    fn default() -> Self {
        Self::Number(8470)
    }
}

/// The port is not a valid number or name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid port {0:?}: give a number from 1 to 65535, or the name of a container's port")]
pub struct PortError(String);

impl FromStr for Port {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let error = || PortError(text.to_owned());
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().ok().filter(|number| *number > 0);
            return number.map(Self::Number).ok_or_else(error);
        }
        // Kubernetes requires an IANA service name.
        let named = text.len() <= 15
            && text
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && !text.starts_with('-')
            && !text.ends_with('-');
        named
            .then(|| Self::Named(text.to_owned()))
            .ok_or_else(error)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Named(name) => name.fmt(f),
        }
    }
}

/// Puts an IPv6 address in brackets. Returns any other host unchanged.
///
/// ```
/// use longshore_resolver::address::bracketed;
/// assert_eq!(bracketed("fd00::1"), "[fd00::1]");
/// assert_eq!(bracketed("10.0.0.1"), "10.0.0.1");
/// ```
#[must_use]
pub fn bracketed(host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) => format!("[{v6}]"),
        _ => host.to_owned(),
    }
}

/// Splits an address into host and port. The host has no brackets.
///
/// ```
/// use longshore_resolver::address::split;
/// assert_eq!(split("[fd00::1]:8470"), ("fd00::1", Some(8470)));
/// assert_eq!(split("worker-0.train:2222"), ("worker-0.train", Some(2222)));
/// assert_eq!(split("worker-0"), ("worker-0", None));
/// ```
#[must_use]
pub fn split(address: &str) -> (&str, Option<u16>) {
    let (host, port) = match address.rsplit_once(':') {
        // A bare IPv6 address contains colons and has no port.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, port.parse().ok())
        }
        _ => (address, None),
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    (inner.unwrap_or(host), port)
}

/// Returns the pod's host for the given kind of address. IPv6 addresses have no
/// brackets.
///
/// # Errors
/// [`PodError::NoAddress`].
pub fn host(pod: &PodFacts, address: Address, family: Family) -> Result<String, PodError> {
    let missing = |what: String| PodError::NoAddress {
        name: pod.metadata.name.clone(),
        what,
    };
    let status = &pod.status;
    let ip = |one: &str, all: &[Ip], what: &str| {
        let found = in_family(one, all, family);
        found.ok_or_else(|| {
            missing(match family {
                Family::Primary => format!("status.{what}"),
                Family::V4 => format!("IPv4 address in status.{what}s"),
                Family::V6 => format!("IPv6 address in status.{what}s"),
            })
        })
    };
    match address {
        Address::PodIp => ip(&status.pod_ip, &status.pod_ips, "podIP"),
        Address::HostIp => ip(&status.host_ip, &status.host_ips, "hostIP"),
        Address::Hostname => Ok(pod.hostname().to_owned()),
        Address::Dns => {
            let subdomain = pod.spec.subdomain.as_str();
            if subdomain.is_empty() {
                return Err(missing("spec.subdomain".to_owned()));
            }
            let (hostname, namespace) = (pod.hostname(), pod.metadata.namespace());
            Ok(format!("{hostname}.{subdomain}.{namespace}.svc"))
        }
    }
}

/// Returns the number of a port of the pod.
///
/// # Errors
/// [`PodError::NoPort`] if no container has a port with this name.
pub fn port(pod: &PodFacts, port: &Port, address: Address) -> Result<u16, PodError> {
    let wanted = match port {
        Port::Number(number) => return Ok(*number),
        Port::Named(name) => name,
    };
    let ports = || pod.spec.containers.iter().flat_map(|one| &one.ports);
    let number = |port: &ContainerPort| {
        let number = match (address, port.host_port) {
            (Address::HostIp, Some(bound)) if bound > 0 => bound,
            _ => port.container_port,
        };
        u16::try_from(number).ok().filter(|number| *number > 0)
    };
    let mut named = ports().filter(|port| port.name == *wanted);
    named.find_map(number).ok_or_else(|| PodError::NoPort {
        name: pod.metadata.name.clone(),
        port: wanted.clone(),
        known: ports()
            .map(|port| port.name.clone())
            .filter(|name| !name.is_empty())
            .collect(),
    })
}

fn in_family(one: &str, all: &[Ip], family: Family) -> Option<String> {
    let all = all.iter().map(|ip| ip.ip.as_str());
    let mut known = std::iter::once(one).chain(all).filter(|ip| !ip.is_empty());
    let found = known.find(|ip| match (family, ip.parse::<IpAddr>()) {
        (Family::Primary, _) => true,
        (Family::V4, Ok(ip)) => ip.is_ipv4(),
        (Family::V6, Ok(ip)) => ip.is_ipv6(),
        (_, Err(_)) => false,
    });
    found.map(str::to_owned)
}
