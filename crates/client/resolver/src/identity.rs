//! The identity of a process: the pod that it runs in, as far as it is known.

use std::{env, fmt, fs, net::IpAddr};

const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";

/// The identity of a process: the pod that it runs in, as far as it is known.
///
/// ```
/// use longshore_resolver::Identity;
/// // The downward API sets POD_NAMESPACE, and every container runtime sets HOSTNAME.
/// let set = |name: &str| match name {
///     "POD_NAMESPACE" => Some("train".to_owned()),
///     "HOSTNAME" => Some("worker-1".to_owned()),
///     _ => None,
/// };
/// let identity = Identity::from_variables(set);
/// assert_eq!(identity.namespace.as_deref(), Some("train"));
/// assert_eq!(identity.to_string(), "the pod \"worker-1\" in namespace \"train\"");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The pod's namespace.
    pub namespace: Option<String>,
    /// The pod's UID.
    pub uid: Option<String>,
    /// The pod's name.
    pub name: Option<String>,
    /// The pod's host name. In an Indexed Job it differs from the pod's name.
    pub hostname: Option<String>,
    /// The pod's IP addresses.
    pub ips: Vec<IpAddr>,
}

impl Identity {
    /// Returns the identity of this process, from its environment variables, its
    /// service account and its host name.
    #[must_use]
    pub fn here() -> Self {
        let mut identity = Self::from_variables(|name| env::var(name).ok());
        let read = |path: &str| {
            let text = fs::read_to_string(path).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        if identity.namespace.is_none() {
            identity.namespace = read(NAMESPACE_FILE);
        }
        if identity.hostname.is_none() {
            identity.hostname = read(HOSTNAME_FILE);
        }
        identity
    }

    /// Reads the identity from environment variables: `POD_NAMESPACE`, `POD_UID`,
    /// `POD_NAME`, `POD_IP` and `POD_IPS`, which the pod's manifest must set with
    /// the downward API, and `HOSTNAME`, which every container runtime sets.
    #[must_use]
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty());
        let ips = [set("POD_IP"), set("POD_IPS")];
        let ips = ips.iter().flatten().flat_map(|list| list.split(','));
        Self {
            namespace: set("POD_NAMESPACE"),
            uid: set("POD_UID"),
            name: set("POD_NAME"),
            hostname: set("HOSTNAME"),
            ips: ips.filter_map(|ip| ip.trim().parse().ok()).collect(),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_ref().or(self.hostname.as_ref()) {
            Some(name) => write!(f, "the pod \"{name}\"")?,
            None => f.write_str("this process")?,
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace \"{namespace}\""),
            None => Ok(()),
        }
    }
}
