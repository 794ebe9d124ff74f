//! Nodes.

use std::{collections::BTreeMap, net::IpAddr};

use jiff::Timestamp;
use longshore_model::Quantity;
use serde::Deserialize;

use super::open_enum;
use crate::{
    error::{Error, Result},
    item::Item,
    kinds::Node,
};

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

/// Amounts of resources, by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resources(BTreeMap<String, Quantity>);

impl Resources {
    /// Cores, with fractions.
    #[must_use]
    pub fn cpu(&self) -> Option<f64> {
        self.get("cpu").map(Quantity::value)
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        // Quantities are finite; a negative one counts as nothing.
        self.get("memory")
            .map(|quantity| quantity.value().max(0.0) as u64)
    }

    /// Any resource by its name, as `nvidia.com/gpu`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Quantity)> {
        self.0
            .iter()
            .map(|(name, quantity)| (name.as_str(), quantity))
    }
}

/// One condition of an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about, as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word.
    #[serde(default)]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default)]
    pub message: Option<String>,
    /// Since when.
    #[serde(default)]
    pub last_transition_time: Option<Timestamp>,
}

impl Condition {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.status == "True"
    }
}

#[derive(Deserialize)]
struct RawAddress {
    #[serde(rename = "type")]
    kind: AddressType,
    address: String,
}

impl Item<Node> {
    /// Where it can be reached; empty when nothing is known.
    ///
    /// # Errors
    /// [`Error::Decode`] when the status is malformed.
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
    /// [`Error::Status`] when it is absent.
    pub fn capacity(&self) -> Result<Resources> {
        self.resources("capacity")
    }

    /// What pods may use of it.
    ///
    /// # Errors
    /// [`Error::Status`] when it is absent.
    pub fn allocatable(&self) -> Result<Resources> {
        self.resources("allocatable")
    }

    fn resources(&self, field: &str) -> Result<Resources> {
        let raw: BTreeMap<String, String> = self.status_field(&[field])?;
        let parsed: Result<_, _> = raw
            .into_iter()
            .map(|(name, text)| text.parse::<Quantity>().map(|quantity| (name, quantity)))
            .collect();
        parsed.map(Resources).map_err(|error| {
            Error::decode(format!("status.{field} of {}", self.described()), error)
        })
    }

    /// How it is.
    ///
    /// # Errors
    /// [`Error::Status`] when it is absent.
    pub fn conditions(&self) -> Result<Vec<Condition>> {
        self.status_field(&["conditions"])
    }

    /// Whether it is ready for pods.
    ///
    /// # Errors
    /// [`Error::Decode`] when the status is malformed.
    pub fn is_ready(&self) -> Result<bool> {
        let all: Vec<Condition> = self.field(&["status", "conditions"])?.unwrap_or_default();
        Ok(all
            .iter()
            .any(|condition| condition.kind == "Ready" && condition.holds()))
    }
}
