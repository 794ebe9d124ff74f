//! The fields of a Service that the controllers read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use longshore_client::{Error, Item, kinds::Any};
use serde::Deserialize;

use crate::key::Key;

/// The address family of a Service, the `addressType` of its slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Family {
    /// IPv4.
    #[serde(rename = "IPv4")]
    V4,
    /// IPv6.
    #[serde(rename = "IPv6")]
    V6,
}

impl Family {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// The target port: a number, or the name of a container port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum TargetPort {
    Number(i32),
    Name(String),
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServicePort {
    #[serde(default)]
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) app_protocol: Option<String>,
    pub(super) target_port: TargetPort,
}

/// A Service whose endpoints the controllers publish.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Service {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) created: Option<Timestamp>,
    pub(super) deleting: bool,
    /// True if the Service is headless, so that it has no cluster IP.
    pub(super) headless: bool,
    pub(super) selector: BTreeMap<String, String>,
    /// True if addresses of pods that are not ready count as ready.
    pub(super) publish_not_ready: bool,
    pub(super) families: Vec<Family>,
    pub(super) ports: Vec<ServicePort>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    spec: Option<RawSpec>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    r#type: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    selector: Option<BTreeMap<String, String>>,
    publish_not_ready_addresses: bool,
    ip_families: Option<Vec<Family>>,
    ports: Option<Vec<ServicePort>>,
}

impl Service {
    /// Reads the object. Returns `None` if the Service has no selector or the type
    /// ExternalName: other clients write the endpoints of such Services.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Any>) -> Result<Option<Self>, Error> {
        let spec = item.typed::<Raw>()?.spec.unwrap_or_default();
        let selector = spec.selector.unwrap_or_default();
        if selector.is_empty() || spec.r#type == "ExternalName" {
            return Ok(None);
        }
        let mut families = spec.ip_families.unwrap_or_default();
        if families.is_empty() {
            families.push(Family::V4);
        }
        let meta = item.meta();
        Ok(Some(Self {
            key: Key::of(item),
            uid: item.uid().to_owned(),
            labels: meta.labels.clone(),
            created: meta.creation_timestamp,
            deleting: meta.deletion_timestamp.is_some(),
            headless: matches!(&*spec.cluster_ip, "" | "None"),
            selector,
            publish_not_ready: spec.publish_not_ready_addresses,
            families,
            ports: spec.ports.unwrap_or_default(),
        }))
    }

    /// Returns true if the Service selects these labels.
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut selector = self.selector.iter();
        selector.all(|(key, value)| labels.get(key) == Some(value))
    }
}
