//! The views of a cluster.

use longshore_model::Gvk;

use super::View;
use crate::{
    cluster::Cluster,
    error::Result,
    item::Item,
    kind::{Any, Kind, KindOf, KindRef, Object},
};

impl Cluster {
    /// Returns a view of all objects of a kind. Sends no request.
    #[must_use]
    pub fn view<K: Kind>(&self) -> View<K> {
        self.view_of(K::info())
    }

    /// Returns a view of all objects of a kind that is known at run time, with the Rust
    /// type `K`. Sends no request. [`Any`] is a type for every kind.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use longshore_client::{KindRef, kinds::Any};
    /// use serde::{Deserialize, Serialize};
    ///
    /// /// The fields of a ConfigMap or a Secret that are needed here.
    /// #[derive(Debug, Clone, Serialize, Deserialize)]
    /// struct Keys {
    ///     data: std::collections::BTreeMap<String, String>,
    /// }
    ///
    /// # let map = serde_json::json!({"metadata": {"name": "a"}, "data": {"x": "1"}});
    /// # cluster.configmaps().in_namespace("default")?.create(&map).await?;
    /// let maps = cluster.view_of::<Keys>(KindRef::namespaced("v1", "ConfigMap", "configmaps"));
    /// let keys = maps.in_namespace("default")?.fetch("a").await?.object()?;
    /// assert!(keys.data.contains_key("x"));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn view_of<K: Object>(&self, kind: impl Into<KindRef>) -> View<K> {
        View::new(self.clone(), KindOf::new(kind.into()))
    }

    /// Returns a view of all objects of a kind, given in any form that kubectl accepts:
    /// `deploy`, `jobs.batch`, `Pod`, `PodList`. A kind that this crate does not know is
    /// looked up in the cluster, once.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the cluster does not have the kind.
    pub async fn kind(&self, word: &str) -> Result<View<Any>> {
        Ok(self.view_of(self.kind_by_name(word).await?))
    }

    /// Returns a view of all objects of the kind with this `apiVersion` and `kind`. The kind of a
    /// list stands for the kind of its items. A kind that this crate does not know is looked up in
    /// the cluster.
    ///
    /// # Errors
    /// The same as [`Cluster::kind`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # cluster.create_manifest("
    /// # apiVersion: apiextensions.k8s.io/v1
    /// # kind: CustomResourceDefinition
    /// # metadata: {name: certificates.cert-manager.io}
    /// # spec:
    /// #   group: cert-manager.io
    /// #   scope: Namespaced
    /// #   names:
    /// #     plural: certificates
    /// #     singular: certificate
    /// #     kind: Certificate
    /// #     listKind: CertificateList
    /// #   versions:
    /// #   - name: v1
    /// #     served: true
    /// #     storage: true
    /// #     schema: {openAPIV3Schema: {type: object}}
    /// # ---
    /// # {apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: web}}
    /// # ", Some("default")).await?;
    /// let pods = cluster.kind_in("v1", "PodList").await?;
    /// assert_eq!(pods.kind().gvk.kind, "Pod");
    /// let certificates = cluster.kind_in("cert-manager.io/v1", "Certificate").await?;
    /// for certificate in certificates.list().await? {
    ///     assert_eq!(certificate.name(), "web");
    /// }
    /// # Ok(()) });
    /// ```
    pub async fn kind_in(&self, api_version: &str, kind: &str) -> Result<View<Any>> {
        let gvk = Gvk::from_api_version(api_version, kind);
        Ok(self.view_of(self.kind_of_items(&gvk).await?))
    }
}

impl<K: Object> View<K> {
    /// Returns the paths of the kind's group, one for each version that the cluster serves,
    /// the preferred version first: `/apis/autoscaling/v2`, `/apis/autoscaling/v1`. The
    /// cluster is queried once. [`KindInfo::api_path`](longshore_model::KindInfo::api_path)
    /// is the path that this client uses first.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the cluster does not have the kind.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// assert_eq!(cluster.pods().api_paths().await?, ["/api/v1"]);
    /// let paths = cluster.horizontalpodautoscalers().api_paths().await?;
    /// assert_eq!(paths, ["/apis/autoscaling/v2", "/apis/autoscaling/v1"]);
    /// # Ok(()) });
    /// ```
    pub async fn api_paths(&self) -> Result<Vec<String>> {
        self.cluster().api_paths(self.kind()).await
    }
}

impl<K: Object> Item<K> {
    /// Like [`View::api_paths`], of the item's kind.
    ///
    /// # Errors
    /// The same as [`View::api_paths`].
    pub async fn api_paths(&self) -> Result<Vec<String>> {
        self.cluster().api_paths(self.kind()).await
    }
}
