//! Nodes.

use std::net::IpAddr;

use serde::Deserialize;

use super::{Resources, open_enum};
use crate::{cluster::Connection, error::Result, item::Item, kinds::Node};

open_enum! {
    /// What an address of a node is for.
    AddressType {
        /// From outside the cluster.
        ExternalIp = "ExternalIP",
        /// From inside the cluster.
        InternalIp = "InternalIP",
        /// The node's own name for itself.
        Hostname = "Hostname",
        /// A name from outside the cluster.
        ExternalDns = "ExternalDNS",
        /// A name from inside the cluster.
        InternalDns = "InternalDNS",
    }
}

/// One address of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// What it is for.
    pub kind: AddressType,
    /// The address as text.
    pub text: String,
}

impl Address {
    /// The address, if it is no name.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.text.parse().ok()
    }
}

#[derive(Deserialize)]
struct RawAddress {
    #[serde(rename = "type")]
    kind: AddressType,
    address: String,
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// # use serde_json::json;
/// use longshore_client::typed::AddressType;
///
/// # cluster.nodes().create(&json!({"metadata": {"name": "n1"}})).await?;
/// # let status = json!({"status": {
/// #     "addresses": [
/// #         {"type": "InternalIP", "address": "10.0.0.7"},
/// #         {"type": "Hostname", "address": "n1.example"},
/// #     ],
/// #     "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
/// #     "allocatable": {"cpu": "3500m", "memory": "15Gi", "pods": "110"},
/// #     "conditions": [{"type": "Ready", "status": "True"}],
/// # }});
/// # cluster.nodes().patch_status("n1", &Patch::merge(status)).await?;
/// let node = cluster.nodes().fetch("n1").await?;
/// assert!(node.holds("Ready")?);
/// let addresses = node.addresses()?;
/// let internal = addresses.iter().find(|address| address.kind == AddressType::InternalIp);
/// assert_eq!(internal.and_then(|address| address.ip()), Some("10.0.0.7".parse()?));
/// // A name is no IP address.
/// assert_eq!((addresses[1].text.as_str(), addresses[1].ip()), ("n1.example", None));
///
/// assert_eq!(node.capacity()?.cpu(), Some(4.0));
/// assert_eq!(node.allocatable()?.cpu(), Some(3.5));
/// # Ok(()) });
/// ```
impl<C: Connection> Item<Node, C> {
    /// Where it can be reached; empty when nothing is known.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when the status is malformed.
    pub fn addresses(&self) -> Result<Vec<Address>> {
        let raw: Vec<RawAddress> = self.field(&["status", "addresses"])?.unwrap_or_default();
        Ok(raw
            .into_iter()
            .map(|raw| Address {
                kind: raw.kind,
                text: raw.address,
            })
            .collect())
    }

    /// All it has.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn capacity(&self) -> Result<Resources> {
        self.resources(&["status", "capacity"])
    }

    /// What pods may use of it.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn allocatable(&self) -> Result<Resources> {
        self.resources(&["status", "allocatable"])
    }
}
