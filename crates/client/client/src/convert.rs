//! Conversions of items: to the type of their kind, and from JSON.

use std::sync::Arc;

use bytes::Bytes;
use longshore_model::{Gvk, KindInfo};
use serde_json::Value;

use crate::{
    cluster::{Cluster, Connection},
    error::{Error, Result},
    item::Item,
    kind::{Any, Kind, KindOf, Object},
    list::List,
    view::View,
};
use longshore_snapshots::Snapshot;

impl<K: Object, C: Connection> Item<K, C> {
    /// The same item without the type of its kind.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let default = cluster.namespaces().fetch("default").await?;
    /// assert_eq!(default.into_any().name(), "default");
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn into_any(self) -> Item<Any, C> {
        let (kind, cluster) = (self.marker().read_as(), self.cluster().clone());
        self.rebind(kind, cluster)
    }

    /// Returns the same item with the type of its kind and that kind's methods, for example
    /// for an item that [`Cluster::create`] returned.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another kind. It names both kinds.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use longshore_client::kinds::{ConfigMap, Pod};
    /// let manifest = serde_json::json!({
    ///     "apiVersion": "v1", "kind": "ConfigMap",
    ///     "metadata": {"name": "settings"}, "data": {"colour": "blue"},
    /// });
    /// let item = cluster.create(&manifest, Some("default")).await?;
    /// let map = item.clone().into_kind::<ConfigMap>()?;
    /// assert_eq!(map.data()?["colour"], "blue");
    ///
    /// let error = item.into_kind::<Pod>().unwrap_err();
    /// assert_eq!(error.to_string(), "kind: expected Pod (v1), found ConfigMap (v1)");
    /// # Ok(()) });
    /// ```
    pub fn into_kind<L: Kind>(self) -> Result<Item<L, C>> {
        let kind = L::info();
        check_kind(&kind, &self.kind().gvk)?;
        Ok(self.rebind(KindOf::new(kind), self.cluster().clone()))
    }
}

impl<K: Object> View<K> {
    /// Creates an item from an object's JSON, for example from a response to
    /// [`ApiServerProxy::get`](crate::ApiServerProxy::get). Sends no request.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another kind and for an object without a name;
    /// [`Error::Namespace`] for an object that is not in the view's namespace.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let json = cluster.proxy().get("/api/v1/namespaces/default", &[]).await?;
    /// let namespace = cluster.namespaces().item_from(&json)?;
    /// assert_eq!(namespace.phase()?.as_str(), "Active");
    /// assert!(cluster.nodes().item_from(&json).is_err());
    /// # Ok(()) });
    /// ```
    pub fn item_from(&self, object: &Value) -> Result<Item<K>> {
        if !object.is_object() {
            return Err(Error::Invalid("expected a JSON object".to_owned()));
        }
        if let Some(found) = gvk(object) {
            check_kind(self.kind(), &found)?;
        }
        if object["metadata"]["name"]
            .as_str()
            .is_none_or(str::is_empty)
        {
            let text = "metadata.name: expected the name of an existing object";
            return Err(Error::Invalid(text.to_owned()));
        }
        let snapshot = Snapshot::parse(&text(object), "the object")?;
        let item = self.wrap(Arc::new(snapshot));
        match (item.namespace(), self.namespace()) {
            (Some(own), Some(of_view)) if own != of_view => Err(Error::Namespace(format!(
                "metadata.namespace: expected {of_view}, found {own}"
            ))),
            _ => Ok(item),
        }
    }

    /// Creates a list from its JSON, for example from a `PodList` that
    /// [`ApiServerProxy::get`](crate::ApiServerProxy::get) returned. Sends no request.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a list of another kind; [`Error::Decode`] if it is not a
    /// list.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use longshore_client::kinds::NamespaceList;
    /// let json = cluster.proxy().get("/api/v1/namespaces", &[]).await?;
    /// assert_eq!(json["kind"], "NamespaceList");
    /// let list: NamespaceList = cluster.namespaces().list_from(&json)?;
    /// assert!(list.iter().any(|namespace| namespace.name() == "default"));
    /// let error = cluster.pods().list_from(&json).unwrap_err();
    /// assert_eq!(error.to_string(), "kind: expected PodList (v1), found NamespaceList (v1)");
    /// # Ok(()) });
    /// ```
    pub fn list_from(&self, list: &Value) -> Result<List<K>> {
        if let Some(found) = gvk(list).filter(|found| found.kind != "List") {
            let mut expected = self.kind().clone();
            expected.gvk.kind = self.kind().list_kind();
            check_kind(&expected, &found)?;
        }
        let body = longshore_snapshots::list(&text(list), "the list")?;
        let wrapped = body.items.into_iter().map(Arc::new);
        Ok(List {
            items: wrapped.map(|snapshot| self.wrap(snapshot)).collect(),
            version: body.version,
        })
    }
}

impl Cluster {
    /// Creates an item of any kind from an object's JSON, by its `apiVersion` and `kind`. A
    /// kind that this crate does not know is looked up in the cluster.
    ///
    /// # Errors
    /// The same as [`Cluster::create`] for the kind, and as [`View::item_from`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use longshore_client::kinds::Namespace;
    /// let json = cluster.proxy().get("/api/v1/namespaces/default", &[]).await?;
    /// let item = cluster.item_from(&json).await?;
    /// assert_eq!(item.fetch().await?, item);
    /// assert_eq!(item.into_kind::<Namespace>()?.phase()?.as_str(), "Active");
    /// # Ok(()) });
    /// ```
    pub async fn item_from(&self, object: &Value) -> Result<Item<Any>> {
        self.view_for(object, None).await?.item_from(object)
    }
}

/// The kind that a value names. Items of lists have none.
fn gvk(object: &Value) -> Option<Gvk> {
    let kind = object["kind"].as_str()?;
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    Some(Gvk::from_api_version(api_version, kind))
}

/// Returns an error unless a value has the kind. It may have another version of the group.
fn check_kind(expected: &KindInfo, found: &Gvk) -> Result<()> {
    if expected.gvk.group == found.group && expected.gvk.kind == found.kind {
        return Ok(());
    }
    let name = |gvk: &Gvk| format!("{} ({})", gvk.kind, gvk.api_version());
    Err(Error::Invalid(format!(
        "kind: expected {}, found {}",
        name(&expected.gvk),
        name(found)
    )))
}

fn text(value: &Value) -> Bytes {
    value.to_string().into()
}
