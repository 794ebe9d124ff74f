//! The views of a cluster, and objects by their `apiVersion` and `kind`.

use serde_json::Value;

use super::{ApiServerProxy, Cluster, Item, Mirror, View, waits};
use crate::kind::{Any, Kind, KindRef, Object};

impl Cluster {
    /// Like [`Cluster::proxy`](crate::Cluster::proxy).
    #[must_use]
    pub fn proxy(&self) -> ApiServerProxy {
        ApiServerProxy::new(self.inner().proxy())
    }

    /// Like [`Cluster::view`](crate::Cluster::view).
    #[must_use]
    pub fn view<K: Kind>(&self) -> View<K> {
        self.inner().view().mirror()
    }

    /// Like [`Cluster::view_of`](crate::Cluster::view_of).
    #[must_use]
    pub fn view_of<K: Object>(&self, kind: impl Into<KindRef>) -> View<K> {
        self.inner().view_of(kind).mirror()
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

impl<K: Object> View<K> {
    /// The cluster of the view.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        self.inner().cluster().clone().mirror()
    }
}
