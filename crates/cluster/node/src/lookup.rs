//! Previously fetched objects that pods refer to.

use std::collections::BTreeMap;

/// A ClusterTrustBundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TrustBundle {
    pub(crate) name: String,
    pub(crate) signer: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// The certificates in PEM.
    pub(crate) pem: String,
}

/// Provides the values of ConfigMaps and Secrets, and the ClusterTrustBundles.
pub(crate) trait Lookup {
    /// Returns the ConfigMap's values; `None` if it does not exist.
    fn config_map(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>>;
    /// Returns the Secret's values; `None` if it does not exist.
    fn secret(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>>;
    /// Returns the ClusterTrustBundles.
    fn trust_bundles(&self) -> &[TrustBundle] {
        &[]
    }
}
