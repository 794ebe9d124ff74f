//! Namespaces, Services, Secrets and ConfigMaps.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

use super::{NamespacePhase, open_enum};
use crate::{
    cluster::Connection,
    error::{Error, Result},
    item::Item,
    kinds::{ConfigMap, Namespace, Secret, Service},
};

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::typed::NamespacePhase;
///
/// let namespace = cluster.namespaces().fetch("default").await?;
/// assert_eq!(namespace.phase()?, NamespacePhase::Active);
/// # Ok(()) });
/// ```
impl<C: Connection> Item<Namespace, C> {
    /// The phase.
    ///
    /// # Errors
    /// [`Error::Status`] if it is absent.
    pub fn phase(&self) -> Result<NamespacePhase> {
        self.status_field(&["phase"])
    }
}

/// An entry point of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IngressPoint {
    /// An IP address.
    Ip(IpAddr),
    /// A host name.
    Hostname(String),
}

#[derive(Deserialize)]
struct RawIngress {
    ip: Option<String>,
    hostname: Option<String>,
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use longshore_client::Patch;
/// use longshore_client::typed::IngressPoint;
/// use serde_json::json;
///
/// let services = cluster.services().in_namespace("default")?;
/// let web = services.create(&json!({
///     "metadata": {"name": "web"},
///     "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
/// })).await?;
/// assert!(web.loadbalancer_ingress()?.is_empty());
/// # let points = json!([{"ip": "203.0.113.9"}]);
/// # let status = json!({"status": {"loadBalancer": {"ingress": points}}});
/// # web.patch_status(&Patch::merge(status)).await?;
///
/// // After it has its load balancer:
/// let points = web.fetch().await?.loadbalancer_ingress()?;
/// assert!(points.contains(&IngressPoint::Ip("203.0.113.9".parse()?)));
/// # Ok(()) });
/// ```
impl<C: Connection> Item<Service, C> {
    /// The entry points of the Service's load balancer; may be empty.
    ///
    /// # Errors
    /// [`Error::Decode`] if the status is malformed.
    pub fn loadbalancer_ingress(&self) -> Result<BTreeSet<IngressPoint>> {
        let raw: Vec<RawIngress> = self
            .field(&["status", "loadBalancer", "ingress"])?
            .unwrap_or_default();
        let mut points = BTreeSet::new();
        for RawIngress { ip, hostname } in raw {
            if let Some(text) = ip.filter(|text| !text.is_empty()) {
                let ip = text.parse().map_err(|error| {
                    Error::decode(format!("the ingress of {}", self.described()), error)
                })?;
                points.insert(IngressPoint::Ip(ip));
            }
            points.extend(
                hostname
                    .filter(|name| !name.is_empty())
                    .map(IngressPoint::Hostname),
            );
        }
        Ok(points)
    }
}

open_enum! {
    /// The type of a Secret.
    SecretType {
        /// Any data.
        Opaque = "Opaque",
        /// A service account's token.
        ServiceAccountToken = "kubernetes.io/service-account-token",
        /// A Docker configuration in the old format.
        Dockercfg = "kubernetes.io/dockercfg",
        /// A Docker configuration.
        DockerConfigJson = "kubernetes.io/dockerconfigjson",
        /// User name and password.
        BasicAuth = "kubernetes.io/basic-auth",
        /// An SSH key.
        SshAuth = "kubernetes.io/ssh-auth",
        /// A certificate and its private key.
        Tls = "kubernetes.io/tls",
        /// A bootstrap token for new nodes.
        BootstrapToken = "bootstrap.kubernetes.io/token",
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::typed::SecretType;
/// use serde_json::json;
///
/// let secrets = cluster.secrets().in_namespace("default")?;
/// let secret = secrets.create(&json!({
///     "metadata": {"name": "login"},
///     "type": "kubernetes.io/basic-auth",
///     "stringData": {"username": "anna", "password": "kettle"},
/// })).await?;
/// assert_eq!(secret.secret_type()?, SecretType::BasicAuth);
/// assert_eq!(secret.data()?["password"], b"kettle");
/// # Ok(()) });
/// ```
impl<C: Connection> Item<Secret, C> {
    /// The decoded data; may be empty.
    ///
    /// # Errors
    /// [`Error::Decode`] if a value is not base64. It names only the key.
    pub fn data(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        // The parser's error could quote the value.
        let raw: Option<BTreeMap<String, String>> = self
            .field(&["data"])
            .map_err(|_| Error::decode(self.described(), "its data are no texts by name"))?;
        raw.unwrap_or_default()
            .into_iter()
            .map(|(key, text)| match STANDARD.decode(&text) {
                Ok(bytes) => Ok((key, bytes)),
                Err(_) => {
                    let what = format!("key {key:?} of {}", self.described());
                    Err(Error::decode(what, "it is not valid base64"))
                }
            })
            .collect()
    }

    /// The type; `Opaque` if it is absent.
    ///
    /// # Errors
    /// [`Error::Decode`] if it is not a string.
    pub fn secret_type(&self) -> Result<SecretType> {
        Ok(self.field(&["type"])?.unwrap_or(SecretType::Opaque))
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use serde_json::json;
///
/// let configmaps = cluster.configmaps().in_namespace("default")?;
/// let settings = json!({"metadata": {"name": "settings"}, "data": {"colour": "blue"}});
/// let settings = configmaps.create(&settings).await?;
/// assert_eq!(settings.data()?["colour"], "blue");
/// # Ok(()) });
/// ```
impl<C: Connection> Item<ConfigMap, C> {
    /// The data; may be empty.
    ///
    /// # Errors
    /// [`Error::Decode`] if they are malformed.
    pub fn data(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.field(&["data"])?.unwrap_or_default())
    }
}
