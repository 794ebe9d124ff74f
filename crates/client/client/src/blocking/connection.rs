//! A connection to a cluster.

use std::path::Path;

use super::{Mirror, reads, run};
use crate::{
    cluster::{self, Connection},
    error::Result,
    transport::Timing,
};

/// A connection to a cluster: see [`Cluster`](crate::Cluster).
#[derive(Debug, Clone)]
pub struct Cluster {
    inner: cluster::Cluster,
}

impl AsRef<cluster::Cluster> for Cluster {
    fn as_ref(&self) -> &cluster::Cluster {
        &self.inner
    }
}

impl Connection for Cluster {}

impl From<cluster::Cluster> for Cluster {
    fn from(inner: cluster::Cluster) -> Self {
        Self { inner }
    }
}

impl From<Cluster> for cluster::Cluster {
    /// The same connection, with asynchronous requests.
    fn from(cluster: Cluster) -> Self {
        cluster.inner
    }
}

impl Mirror for cluster::Cluster {
    type Here = Cluster;

    fn mirror(self) -> Cluster {
        self.into()
    }
}

impl Cluster {
    pub(super) fn inner(&self) -> &cluster::Cluster {
        &self.inner
    }

    /// Like [`Cluster::connect`](crate::Cluster::connect).
    ///
    /// # Errors
    /// The errors of [`Cluster::connect`](crate::Cluster::connect).
    pub fn connect() -> Result<Self> {
        run(cluster::Cluster::connect()).map(Self::from)
    }

    /// Like [`Cluster::from_kubeconfig`](crate::Cluster::from_kubeconfig).
    ///
    /// # Errors
    /// The errors of [`Cluster::from_kubeconfig`](crate::Cluster::from_kubeconfig).
    pub fn from_kubeconfig(path: Option<&Path>, context: Option<&str>) -> Result<Self> {
        run(cluster::Cluster::from_kubeconfig(path, context)).map(Self::from)
    }

    /// Like [`Cluster::from_url`](crate::Cluster::from_url).
    ///
    /// # Errors
    /// The errors of [`Cluster::from_url`](crate::Cluster::from_url).
    ///
    /// ```
    /// let cluster = longshore_client::blocking::Cluster::from_url("http://localhost:8001/")?;
    /// assert_eq!(cluster.url(), "http://localhost:8001");
    /// # Ok::<(), longshore_client::Error>(())
    /// ```
    pub fn from_url(url: &str) -> Result<Self> {
        cluster::Cluster::from_url(url).map(Self::from)
    }

    /// Like [`Cluster::with_timing`](crate::Cluster::with_timing).
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        self.inner.with_timing(timing).into()
    }

    /// Like [`Cluster::with_user_agent`](crate::Cluster::with_user_agent).
    #[must_use]
    pub fn with_user_agent(self, name: &str) -> Self {
        self.inner.with_user_agent(name).into()
    }

    /// Like [`Cluster::with_warning_handler`](crate::Cluster::with_warning_handler).
    #[must_use]
    pub fn with_warning_handler(self, handler: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.inner.with_warning_handler(handler).into()
    }

    reads! {
        "Cluster": default_namespace() -> &str;
        "Cluster": url() -> String;
        "Cluster": close() -> ();
        "Cluster": is_closed() -> bool;
    }
}
