//! Ports of a node that containers request (`hostPort`), and conflicts between them.

/// The address that stands for all addresses of a node.
const ALL_ADDRESSES: &str = "0.0.0.0";

/// A port of a node that a container requests.
///
/// ```
/// use longshore_model::HostPort;
///
/// let all = HostPort::new(None, None, 80).unwrap();
/// let local = HostPort::new(Some("127.0.0.1"), Some("TCP"), 80).unwrap();
/// let udp = HostPort::new(None, Some("UDP"), 80).unwrap();
/// assert!(all.conflicts_with(&local));
/// assert!(!all.conflicts_with(&udp));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    ip: String,
    protocol: String,
    port: i32,
}

impl HostPort {
    /// The reason why a pod does not fit on a node where a requested port is in use, as reported by
    /// Kubernetes' scheduler and kubelet.
    pub const CONFLICT: &str = "node(s) didn't have free ports for the requested pod ports";

    /// Returns the port for the fields `hostIP`, `protocol` and `hostPort` of a container's port;
    /// `None` if it requests no port of the node.
    #[must_use]
    pub fn new(ip: Option<&str>, protocol: Option<&str>, port: i32) -> Option<Self> {
        let text = |text: Option<&str>, default: &str| {
            let text = text.filter(|text| !text.is_empty());
            text.unwrap_or(default).to_owned()
        };
        (port > 0).then(|| Self {
            ip: text(ip, ALL_ADDRESSES),
            protocol: text(protocol, "TCP"),
            port,
        })
    }

    /// Returns true if two containers cannot have these ports on one node: the port and protocol
    /// are the same, and the addresses, too, or one of them is `0.0.0.0`.
    #[must_use]
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let is_all = |port: &Self| port.ip == ALL_ADDRESSES;
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || is_all(self) || is_all(other))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ports_conflict_if_protocol_port_and_address_overlap() {
        let port = |ip, protocol, port| HostPort::new(ip, protocol, port).unwrap();
        let taken = port(Some("127.0.0.1"), Some("TCP"), 80);
        for (ip, protocol, number, conflicts) in [
            (Some("127.0.0.1"), Some("TCP"), 80, true),
            (Some("127.0.0.1"), None, 80, true),
            (Some("0.0.0.0"), Some("TCP"), 80, true),
            (None, Some("TCP"), 80, true),
            (Some(""), Some(""), 80, true),
            (Some("127.0.0.2"), Some("TCP"), 80, false),
            (Some("127.0.0.1"), Some("UDP"), 80, false),
            (Some("127.0.0.1"), Some("TCP"), 81, false),
        ] {
            let other = port(ip, protocol, number);
            assert_eq!(taken.conflicts_with(&other), conflicts, "{other:?}");
            assert_eq!(other.conflicts_with(&taken), conflicts, "{other:?}");
        }
        assert_eq!(HostPort::new(None, None, 0), None);
    }
}
