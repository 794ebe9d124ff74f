//! Creates and applies objects of any kind by their `apiVersion` and `kind`, one by one or
//! as a manifest.

use longshore_model::Gvk;
use serde_json::Value;

use crate::{
    cluster::Cluster,
    error::{Error, Result},
    item::Item,
    kind::Any,
    manifest,
    view::View,
};

impl Cluster {
    /// Creates an object of any kind, by its `apiVersion` and `kind`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the kind is missing or unknown; [`Error::Namespace`] if
    /// `namespace` contradicts the data, or both are missing for a namespaced kind.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let item = cluster.create(&serde_json::json!({
    ///     "apiVersion": "v1", "kind": "ConfigMap",
    ///     "metadata": {"generateName": "settings-"}, "data": {"colour": "blue"},
    /// }), Some("default")).await?;
    /// assert!(item.name().starts_with("settings-"));
    /// # Ok(()) });
    /// ```
    pub async fn create(&self, data: &Value, namespace: Option<&str>) -> Result<Item<Any>> {
        self.view_for(data, namespace).await?.create(data).await
    }

    /// Creates all objects of a manifest in its order: see [`manifest::read`]. `namespace`
    /// is the namespace of objects that have none; another namespace in the manifest is an
    /// error. If both are missing, the namespace is [`Cluster::home`].
    ///
    /// No request is sent unless the whole manifest is valid. The first rejected object
    /// ends the operation; the objects before it have been created.
    ///
    /// # Errors
    /// The same as [`manifest::read`] and [`Cluster::create`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let made = cluster.create_manifest("
    /// apiVersion: v1
    /// kind: ConfigMap
    /// metadata: {name: a}
    /// ---
    /// apiVersion: v1
    /// kind: ConfigMap
    /// metadata: {name: b}
    /// ", Some("default")).await?;
    /// assert_eq!(made.len(), 2);
    /// # Ok(()) });
    /// ```
    pub async fn create_manifest(
        &self,
        text: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<Item<Any>>> {
        let mut made = Vec::new();
        for object in manifest::read(text)? {
            let view = self.placed(&object, namespace).await?;
            let item = view.create(&object).await?;
            manifest::settled(&item).await?;
            made.push(item);
        }
        Ok(made)
    }

    /// Applies an object of any kind on the server. `manager` then owns the given fields
    /// and no others. `force` takes over fields of other managers.
    ///
    /// # Errors
    /// The same as [`Cluster::create`], and [`Error::conflicts`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let data = serde_json::json!({
    ///     "apiVersion": "v1", "kind": "ConfigMap",
    ///     "metadata": {"name": "settings"}, "data": {"colour": "blue"},
    /// });
    /// let made = cluster.apply(&data, Some("default"), "painter", false).await?;
    /// let again = cluster.apply(&data, Some("default"), "painter", false).await?;
    /// // An unchanged object is not written.
    /// assert_eq!(made.version(), again.version());
    /// # Ok(()) });
    /// ```
    pub async fn apply(
        &self,
        data: &Value,
        namespace: Option<&str>,
        manager: &str,
        force: bool,
    ) -> Result<Item<Any>> {
        let view = self.view_for(data, namespace).await?;
        view.apply(data, manager, force).await
    }

    /// Applies all objects of a manifest, in the order of the manifest. An object without a
    /// namespace gets one as in [`Cluster::create_manifest`].
    ///
    /// # Errors
    /// The same as [`manifest::read`] and [`Cluster::apply`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let manifest = "
    /// apiVersion: v1
    /// kind: Namespace
    /// metadata: {name: shop}
    /// ---
    /// apiVersion: v1
    /// kind: ConfigMap
    /// metadata: {name: settings}
    /// data: {colour: blue}
    /// ";
    /// // The Namespace is cluster-scoped; the ConfigMap is created in shop.
    /// let applied = cluster.apply_manifest(manifest, Some("shop"), "painter", false).await?;
    /// assert_eq!(applied[0].namespace(), None);
    /// assert_eq!(applied[1].namespace(), Some("shop"));
    /// # Ok(()) });
    /// ```
    pub async fn apply_manifest(
        &self,
        text: &str,
        namespace: Option<&str>,
        manager: &str,
        force: bool,
    ) -> Result<Vec<Item<Any>>> {
        let mut applied = Vec::new();
        for object in manifest::read(text)? {
            let view = self.placed(&object, namespace).await?;
            let item = view.apply(&object, manager, force).await?;
            manifest::settled(&item).await?;
            applied.push(item);
        }
        Ok(applied)
    }

    async fn placed(&self, data: &Value, namespace: Option<&str>) -> Result<View<Any>> {
        match namespace {
            Some(namespace) => self.place(data, namespace).await,
            None => self.home(data).await,
        }
    }

    /// The view of an object of a manifest: in `namespace`, if its kind is namespaced.
    ///
    /// # Errors
    /// The same as [`Cluster::create`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use serde_json::json;
    /// let map = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    /// assert_eq!(cluster.place(&map, "shop").await?.namespace(), Some("shop"));
    /// let namespace = json!({"apiVersion": "v1", "kind": "Namespace"});
    /// assert_eq!(cluster.place(&namespace, "shop").await?.namespace(), None);
    /// // An explicit namespace must match.
    /// assert!(cluster.view_for(&namespace, Some("shop")).await.is_err());
    /// # Ok(()) });
    /// ```
    pub async fn place(&self, data: &Value, namespace: &str) -> Result<View<Any>> {
        let view = self.view_for(data, None).await?;
        if view.kind().is_namespaced() {
            self.view_for(data, Some(namespace)).await
        } else {
            Ok(view)
        }
    }

    /// Returns the view for an object. Its namespace is the object's, otherwise the cluster's
    /// default, as in kubectl.
    ///
    /// # Errors
    /// The same as [`Cluster::create`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use serde_json::json;
    /// let map = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    /// assert_eq!(cluster.home(&map).await?.namespace(), Some("default"));
    /// let named = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop"}});
    /// assert_eq!(cluster.home(&named).await?.namespace(), Some("shop"));
    /// let namespace = json!({"apiVersion": "v1", "kind": "Namespace"});
    /// assert_eq!(cluster.home(&namespace).await?.namespace(), None);
    /// # Ok(()) });
    /// ```
    pub async fn home(&self, data: &Value) -> Result<View<Any>> {
        let view = self.view_for(data, None).await?;
        if view.kind().is_namespaced() && view.namespace().is_none() {
            view.in_namespace(self.default_namespace())
        } else {
            Ok(view)
        }
    }

    /// The view of an object.
    ///
    /// # Errors
    /// The same as [`Cluster::create`].
    pub async fn view_for(&self, data: &Value, namespace: Option<&str>) -> Result<View<Any>> {
        let word = |key: &str| {
            data.get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .ok_or_else(|| {
                    Error::Invalid(format!("the object has no {key}: every object needs one"))
                })
        };
        let (version, kind) = (word("apiVersion")?, word("kind")?);
        if version.matches('/').count() > 1 {
            return Err(Error::Invalid(format!(
                "apiVersion {version:?} is neither VERSION nor GROUP/VERSION"
            )));
        }
        let gvk = Gvk::from_api_version(version, kind);
        if let Some(items) = Self::items_of(&gvk) {
            return Err(Error::Invalid(format!(
                "kind: expected an object, found the list {kind}: pass each {} in its items, or read a manifest, which can contain lists",
                items.gvk.kind
            )));
        }
        let view = self.view_of(self.kind_of(&gvk).await?);
        let own = data["metadata"]["namespace"]
            .as_str()
            .filter(|own| !own.is_empty());
        match (own, namespace) {
            (Some(own), Some(other)) if own != other => Err(Error::Namespace(format!(
                "the namespace {own:?} in the object contradicts {other:?}: omit one of them"
            ))),
            (None, None) => Ok(view),
            (Some(namespace), _) | (None, Some(namespace)) => view.in_namespace(namespace),
        }
    }
}
