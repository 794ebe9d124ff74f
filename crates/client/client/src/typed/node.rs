//! Nodes.

use std::net::IpAddr;

use serde::Deserialize;

use super::{Resources, open_enum};
use crate::{cluster::Connection, error::Result, item::Item, kinds::Node};

open_enum! {
    /// The type of a node's address.
    AddressType {
        /// An IP address outside the cluster.
        ExternalIp = "ExternalIP",
        /// An IP address inside the cluster.
        InternalIp = "InternalIP",
        /// The host name that the node reports.
        Hostname = "Hostname",
        /// A DNS name outside the cluster.
        ExternalDns = "ExternalDNS",
        /// A DNS name inside the cluster.
        InternalDns = "InternalDNS",
    }
}

/// An address of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The type.
    pub kind: AddressType,
    /// The address as text.
    pub text: String,
}

impl Address {
    /// The IP address, unless it is a name.
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
/// // A name is not an IP address.
/// assert_eq!((addresses[1].text.as_str(), addresses[1].ip()), ("n1.example", None));
///
/// assert_eq!(node.capacity()?.cpu(), Some(4.0));
/// assert_eq!(node.allocatable()?.cpu(), Some(3.5));
/// # Ok(()) });
/// ```
impl<C: Connection> Item<Node, C> {
    /// The addresses of the node; may be empty.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) if the status is malformed.
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

    /// The capacity of the node.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) if it is absent.
    pub fn capacity(&self) -> Result<Resources> {
        self.resources(&["status", "capacity"])
    }

    /// The resources that pods can use.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) if it is absent.
    pub fn allocatable(&self) -> Result<Resources> {
        self.resources(&["status", "allocatable"])
    }
}
