//! Pods.

use std::net::IpAddr;

use jiff::Timestamp;

use super::{Container, PodPhase};
use crate::{error::Result, item::Item, kinds::Pod};

impl Item<Pod> {
    /// How far it has come.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn phase(&self) -> Result<PodPhase> {
        self.status_field(&["phase"])
    }

    /// Its address in the cluster.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) while it has none.
    pub fn ip(&self) -> Result<IpAddr> {
        self.address("podIP")
    }

    /// The address of its node.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) while it has none.
    pub fn host_ip(&self) -> Result<IpAddr> {
        self.address("hostIP")
    }

    fn address(&self, field: &str) -> Result<IpAddr> {
        let text: String = self.status_field(&[field])?;
        if text.is_empty() {
            return Err(self.lacks(&format!("status.{field}")));
        }
        text.parse().map_err(|error| {
            crate::Error::decode(format!("status.{field} of {}", self.described()), error)
        })
    }

    /// Why it is in its phase, for people.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn message(&self) -> Result<String> {
        self.status_field(&["message"])
    }

    /// Why it is in its phase, in a word.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) when it is absent.
    pub fn reason(&self) -> Result<String> {
        self.status_field(&["reason"])
    }

    /// When its node took it on.
    ///
    /// # Errors
    /// [`Error::Status`](crate::Error::Status) while no node has.
    pub fn start_time(&self) -> Result<Timestamp> {
        self.status_field(&["startTime"])
    }

    /// The node it is on; `None` while it has none.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when it is no text.
    pub fn node(&self) -> Result<Option<String>> {
        let name: Option<String> = self.field(&["spec", "nodeName"])?;
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// What became of its containers, in the order of the status; empty while
    /// its node has said nothing.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) when the status is malformed.
    pub fn containers(&self) -> Result<Vec<Container>> {
        self.container_statuses("containerStatuses")
    }

    /// As [`Item::containers`], of the init containers.
    ///
    /// # Errors
    /// As [`Item::containers`].
    pub fn init_containers(&self) -> Result<Vec<Container>> {
        self.container_statuses("initContainerStatuses")
    }

    fn container_statuses(&self, field: &str) -> Result<Vec<Container>> {
        let raw: Vec<serde_json::Value> = self.field(&["status", field])?.unwrap_or_default();
        Ok(raw
            .into_iter()
            .map(|raw| Container::new(self.clone(), raw))
            .collect())
    }
}
