//! A connection to a cluster.

use std::{ops::Deref, path::Path};

use serde_json::Value;

use super::{ApiServerProxy, Item, Mirror, View, run, waits};
use crate::{
    cluster,
    error::Result,
    kind::{Any, Kind, KindRef, Object},
    transport::Timing,
};

/// A connection to a cluster: see [`Cluster`](crate::Cluster).
#[derive(Debug, Clone)]
pub struct Cluster {
    inner: cluster::Cluster,
}

impl Deref for Cluster {
    type Target = cluster::Cluster;

    fn deref(&self) -> &cluster::Cluster {
        &self.inner
    }
}

impl From<cluster::Cluster> for Cluster {
    fn from(inner: cluster::Cluster) -> Self {
        Self { inner }
    }
}

impl Mirror for cluster::Cluster {
    type Here = Cluster;

    fn mirror(self) -> Cluster {
        self.into()
    }
}

impl Cluster {
    /// As [`Cluster::connect`](crate::Cluster::connect).
    ///
    /// # Errors
    /// As there.
    pub fn connect() -> Result<Self> {
        run(cluster::Cluster::connect()).map(Self::from)
    }

    /// As [`Cluster::from_kubeconfig`](crate::Cluster::from_kubeconfig).
    ///
    /// # Errors
    /// As there.
    pub fn from_kubeconfig(path: Option<&Path>, context: Option<&str>) -> Result<Self> {
        run(cluster::Cluster::from_kubeconfig(path, context)).map(Self::from)
    }

    /// As [`Cluster::from_url`](crate::Cluster::from_url).
    ///
    /// # Errors
    /// As there.
    ///
    /// ```
    /// let cluster = longshore_client::blocking::Cluster::from_url("http://localhost:8001/")?;
    /// assert_eq!(cluster.url(), "http://localhost:8001");
    /// # Ok::<(), longshore_client::Error>(())
    /// ```
    pub fn from_url(url: &str) -> Result<Self> {
        cluster::Cluster::from_url(url).map(Self::from)
    }

    /// As [`Cluster::with_timing`](crate::Cluster::with_timing).
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        self.inner.with_timing(timing).into()
    }

    /// As [`Cluster::with_user_agent`](crate::Cluster::with_user_agent).
    #[must_use]
    pub fn with_user_agent(self, name: &str) -> Self {
        self.inner.with_user_agent(name).into()
    }

    /// As [`Cluster::with_warning_handler`](crate::Cluster::with_warning_handler).
    #[must_use]
    pub fn with_warning_handler(self, handler: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.inner.with_warning_handler(handler).into()
    }

    /// As [`Cluster::proxy`](crate::Cluster::proxy).
    #[must_use]
    pub fn proxy(&self) -> ApiServerProxy {
        ApiServerProxy::new(self.inner.proxy())
    }

    /// As [`Cluster::view`](crate::Cluster::view).
    #[must_use]
    pub fn view<K: Kind>(&self) -> View<K> {
        self.inner.view().mirror()
    }

    /// As [`Cluster::view_of`](crate::Cluster::view_of).
    #[must_use]
    pub fn view_of<K: Object>(&self, kind: impl Into<KindRef>) -> View<K> {
        self.inner.view_of(kind).mirror()
    }

    waits! {
        "Cluster": kind(word: &str) -> View<Any>;
        "Cluster": kind_in(api_version: &str, kind: &str) -> View<Any>;
        "Cluster": create(data: &Value, namespace: Option<&str>) -> Item<Any>;
        "Cluster": create_manifest(text: &str, namespace: Option<&str>) -> Vec<Item<Any>>;
        "Cluster": apply(data: &Value, namespace: Option<&str>, manager: &str, force: bool) -> Item<Any>;
        "Cluster": apply_manifest(text: &str, namespace: Option<&str>, manager: &str, force: bool) -> Vec<Item<Any>>;
        "Cluster": item_from(object: &Value) -> Item<Any>;
        "Cluster": home(data: &Value) -> View<Any>;
        "Cluster": place(data: &Value, namespace: &str) -> View<Any>;
        "Cluster": view_for(data: &Value, namespace: Option<&str>) -> View<Any>;
    }
}

impl<K: Object> Item<K> {
    /// The cluster it came from.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        self.inner.cluster().clone().mirror()
    }
}
