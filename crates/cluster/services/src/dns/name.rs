//! The names that the server answers for. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use domain::base::name::ToLabelIter;

use crate::{objects::Protocol, table::Key};

/// The zone of the cluster.
pub const ZONE: &str = "cluster.local";

/// A name of the zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ZoneName {
    /// The zone itself.
    Zone,
    /// The version of the names (`dns-version`).
    Version,
    /// The server itself (`ns.dns`).
    Server,
    /// A name that has only names below it: `svc`, `pod` or `dns`.
    Parent,
    /// `NAMESPACE.svc` or `NAMESPACE.pod`.
    Namespace(String),
    /// `SERVICE.NAMESPACE.svc`, and the ports that the name selects.
    Service(Key, Ports),
    /// `HOSTNAME.SERVICE.NAMESPACE.svc`.
    Endpoint { service: Key, hostname: String },
    /// `A-B-C-D.NAMESPACE.pod`.
    Pod { namespace: String, address: IpAddr },
    /// Another name.
    Unknown,
}

/// Ports of a Service that a name selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ports {
    /// All ports.
    All,
    /// `_PROTOCOL`: the parent of the names of ports.
    Protocol(Protocol),
    /// `_PORT._PROTOCOL`.
    Named(String, Protocol),
}

impl Ports {
    pub(super) fn include(&self, name: &str, protocol: Protocol) -> bool {
        match self {
            Self::All => true,
            Self::Protocol(wanted) => *wanted == protocol,
            Self::Named(wanted, of) => wanted == name && *of == protocol,
        }
    }
}

/// Returns the labels of a name in lower case, without the root.
pub(super) fn labels_of(name: &impl ToLabelIter) -> Vec<String> {
    let labels = name.iter_labels().filter(|label| !label.is_root());
    labels
        .map(|label| String::from_utf8_lossy(label.as_slice()).to_ascii_lowercase())
        .collect()
}

/// Reads a name, without its root; `None` if it is not in the zone. The labels are in lower case.
pub(super) fn in_zone(labels: &[String]) -> Option<ZoneName> {
    let (below, zone) = labels.split_at_checked(labels.len().checked_sub(2)?)?;
    if zone.join(".") != ZONE {
        return None;
    }
    let below: Vec<&str> = below.iter().map(String::as_str).collect();
    Some(match below[..] {
        [] => ZoneName::Zone,
        ["dns-version"] => ZoneName::Version,
        ["ns", "dns"] => ZoneName::Server,
        ["svc" | "pod" | "dns"] => ZoneName::Parent,
        [namespace, "svc" | "pod"] => ZoneName::Namespace(namespace.to_owned()),
        [name, namespace, "svc"] => ZoneName::Service(Key::new(Some(namespace), name), Ports::All),
        [first, name, namespace, "svc"] => {
            let service = Key::new(Some(namespace), name);
            match (protocol(first), first.starts_with('_')) {
                (Some(protocol), _) => ZoneName::Service(service, Ports::Protocol(protocol)),
                (None, true) => ZoneName::Unknown,
                (None, false) => ZoneName::Endpoint {
                    service,
                    hostname: first.to_owned(),
                },
            }
        }
        [port, second, name, namespace, "svc"] => {
            match (port.strip_prefix('_'), protocol(second)) {
                (Some(port), Some(protocol)) if !port.is_empty() => ZoneName::Service(
                    Key::new(Some(namespace), name),
                    Ports::Named(port.to_owned(), protocol),
                ),
                _ => ZoneName::Unknown,
            }
        }
        [address, namespace, "pod"] => match address_of_label(address) {
            Some(address) => ZoneName::Pod {
                namespace: namespace.to_owned(),
                address,
            },
            None => ZoneName::Unknown,
        },
        _ => ZoneName::Unknown,
    })
}

fn protocol(label: &str) -> Option<Protocol> {
    match label {
        "_tcp" => Some(Protocol::Tcp),
        "_udp" => Some(Protocol::Udp),
        "_sctp" => Some(Protocol::Other),
        _ => None,
    }
}

/// Writes an address as a label.
pub(super) fn label_of_address(address: IpAddr) -> String {
    address.to_string().replace(['.', ':'], "-")
}

fn address_of_label(label: &str) -> Option<IpAddr> {
    let v4: Result<Ipv4Addr, _> = label.replace('-', ".").parse();
    let v6 = || label.replace('-', ":").parse::<Ipv6Addr>();
    v4.map(IpAddr::V4).or_else(|_| v6().map(IpAddr::V6)).ok()
}

/// Reads the address of a name in `in-addr.arpa` or `ip6.arpa`.
pub(super) fn reverse(labels: &[String]) -> Option<IpAddr> {
    let (digits, zone) = labels.split_at_checked(labels.len().checked_sub(2)?)?;
    match zone.join(".").as_str() {
        "in-addr.arpa" => {
            let reversed: Vec<&str> = digits.iter().rev().map(String::as_str).collect();
            reversed.join(".").parse().map(IpAddr::V4).ok()
        }
        "ip6.arpa" if digits.len() == 32 => {
            let mut bits = 0_u128;
            for digit in digits.iter().rev() {
                let is_digit = digit.len() == 1;
                let value = u8::from_str_radix(digit, 16).ok().filter(|_| is_digit)?;
                bits = bits << 4 | u128::from(value);
            }
            Some(IpAddr::V6(bits.into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn labels(name: &str) -> Vec<String> {
        name.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn names_of_the_zone() {
        let of = |name: &str| in_zone(&labels(name));
        let web = Key::new(Some("n"), "web");
        for (name, expected) in [
            ("cluster.local", ZoneName::Zone),
            ("dns-version.cluster.local", ZoneName::Version),
            ("svc.cluster.local", ZoneName::Parent),
            ("n.svc.cluster.local", ZoneName::Namespace("n".to_owned())),
            (
                "web.n.svc.cluster.local",
                ZoneName::Service(web.clone(), Ports::All),
            ),
            (
                "_udp.web.n.svc.cluster.local",
                ZoneName::Service(web.clone(), Ports::Protocol(Protocol::Udp)),
            ),
            (
                "_http._tcp.web.n.svc.cluster.local",
                ZoneName::Service(web.clone(), Ports::Named("http".to_owned(), Protocol::Tcp)),
            ),
            (
                "h.web.n.svc.cluster.local",
                ZoneName::Endpoint {
                    service: web,
                    hostname: "h".to_owned(),
                },
            ),
            (
                "10-0-0-1.n.pod.cluster.local",
                ZoneName::Pod {
                    namespace: "n".to_owned(),
                    address: "10.0.0.1".parse().unwrap(),
                },
            ),
            ("_x.web.n.svc.cluster.local", ZoneName::Unknown),
            ("a.b.c.d.e.svc.cluster.local", ZoneName::Unknown),
            ("x.n.pod.cluster.local", ZoneName::Unknown),
        ] {
            assert_eq!(of(name), Some(expected), "{name}");
        }
        for name in ["local", "web.n.svc", "xcluster.local", "example.com"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn addresses_in_names() {
        for text in ["10.0.0.1", "fd00::1"] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(address_of_label(&label_of_address(address)), Some(address));
        }
        let of = |name: &str| reverse(&labels(name)).map(|address| address.to_string());
        assert_eq!(of("4.3.2.1.in-addr.arpa").as_deref(), Some("1.2.3.4"));
        assert_eq!(of("3.2.1.in-addr.arpa"), None);
        assert_eq!(of("4.3.2.x.in-addr.arpa"), None);
        let one = format!("1.{}0.0.d.f.ip6.arpa", "0.".repeat(27));
        assert_eq!(of(&one).as_deref(), Some("fd00::1"));
        assert_eq!(of("+1.0.ip6.arpa"), None);
        assert_eq!(of("example.com"), None);
    }
}
