//! Relations between objects: owners, children, the pods of a workload, the events of an
//! object.

mod workloads;

use longshore_model::{
    FieldSelector, Gvk, LabelSelector, OwnerReference, selector::StructuredSelector,
};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    item::Item,
    kind::{Any, Kind, Object},
    kinds::Event,
    view::View,
};

impl<K: Object> Item<K> {
    /// Returns the owner of this object: its controller, otherwise the first owner. Returns
    /// `None` if it has no owner, or the owner was deleted.
    ///
    /// # Errors
    /// The server rejects the request; [`Error::Invalid`] if the cluster does not know the
    /// owner's kind.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # use serde_json::json;
    /// # let pods = cluster.pods().in_namespace("default")?;
    /// # let containers = json!([{"name": "main", "image": "busybox"}]);
    /// # let owner = cluster.configmaps().in_namespace("default")?;
    /// # let owner = owner.create(&json!({"metadata": {"name": "settings"}})).await?;
    /// # let owned = json!([{
    /// #     "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name(), "uid": owner.uid(),
    /// # }]);
    /// # let meta = json!({"name": "web", "ownerReferences": owned});
    /// # pods.create(&json!({"metadata": meta, "spec": {"containers": containers}})).await?;
    /// let pod = pods.fetch("web").await?;
    /// let owner = pod.owner().await?.ok_or("it belongs to nothing")?;
    /// assert_eq!(owner.kind().gvk.kind, "ConfigMap");
    /// assert_eq!(owner.name(), "settings");
    /// assert!(owner.owner().await?.is_none());
    /// // All owners: an object may have several.
    /// assert_eq!(pod.owners().await?, [owner]);
    /// # Ok(()) });
    /// ```
    pub async fn owner(&self) -> Result<Option<Item<Any>>> {
        let meta = self.meta();
        let Some(owner) = meta.controller().or(meta.owner_references.first()) else {
            return Ok(None);
        };
        self.referred(owner).await
    }

    /// Returns all owners of this object that still exist.
    ///
    /// # Errors
    /// The same as [`Item::owner`].
    pub async fn owners(&self) -> Result<Vec<Item<Any>>> {
        let mut owners = Vec::new();
        for owner in &self.meta().owner_references {
            owners.extend(self.referred(owner).await?);
        }
        Ok(owners)
    }

    async fn referred(&self, owner: &OwnerReference) -> Result<Option<Item<Any>>> {
        let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
        let view = self.cluster().view_of(self.cluster().kind_of(&gvk).await?);
        let namespace = self.namespace().map(str::to_owned);
        let namespaced = view.kind().is_namespaced();
        let view = view.with_namespace(namespace.filter(|_| namespaced));
        let found = view.find(&owner.name).await?;
        // An object with the same name and another uid is another object.
        Ok(found.filter(|found| found.uid() == owner.uid))
    }

    /// Returns the objects of a kind that this object owns directly.
    ///
    /// # Errors
    /// The same as [`View::list`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # use serde_json::json;
    /// use longshore_client::kinds::Pod;
    ///
    /// # let jobs = cluster.jobs().in_namespace("default")?;
    /// # let pods = cluster.pods().in_namespace("default")?;
    /// # let spec = json!({
    /// #     "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}],
    /// # });
    /// # let data = json!({"metadata": {"name": "sums"}, "spec": {"template": {"spec": spec}}});
    /// # let job = jobs.create(&data).await?;
    /// # let owned = json!([{
    /// #     "apiVersion": "batch/v1", "kind": "Job", "name": "sums", "uid": job.uid(),
    /// #     "controller": true,
    /// # }]);
    /// # let labels = job.spec()?["selector"]["matchLabels"].clone();
    /// # let meta = json!({"name": "sums-x2k7p", "labels": labels, "ownerReferences": owned});
    /// # pods.create(&json!({"metadata": meta, "spec": spec})).await?;
    /// let job = jobs.fetch("sums").await?;
    /// let children = job.children::<Pod>().await?;
    /// assert_eq!(children.len(), 1);
    /// for pod in &children {
    ///     println!("{} {}", pod.name(), pod.phase()?);
    /// }
    /// // The same for a workload, which also selects its pods by label.
    /// assert_eq!(job.pods().await?, children);
    /// # Ok(()) });
    /// ```
    pub async fn children<C: Kind>(&self) -> Result<Vec<Item<C>>> {
        self.children_in(&self.cluster().view()).await
    }

    /// Returns the objects of a view that this object owns directly, for example of kinds without a
    /// Rust type.
    ///
    /// # Errors
    /// The same as [`View::list`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # use serde_json::json;
    /// # let configmaps = cluster.configmaps().in_namespace("default")?;
    /// # let owner = configmaps.create(&json!({"metadata": {"name": "settings"}})).await?;
    /// # let owned = json!([{
    /// #     "apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": owner.uid(),
    /// # }]);
    /// # let secrets = cluster.secrets().in_namespace("default")?;
    /// # secrets.create(&json!({"metadata": {"name": "login", "ownerReferences": owned}})).await?;
    /// # secrets.create(&json!({"metadata": {"name": "other"}})).await?;
    /// let settings = configmaps.fetch("settings").await?;
    /// // A kind whose name is known only at run time.
    /// let secrets = cluster.kind("secrets").await?;
    /// let children = settings.children_in(&secrets).await?;
    /// assert_eq!(children.len(), 1);
    /// assert_eq!(children[0].name(), "login");
    /// # Ok(()) });
    /// ```
    pub async fn children_in<C: Object>(&self, view: &View<C>) -> Result<Vec<Item<C>>> {
        let mut view = view.clone();
        if self.namespace().is_some() && view.kind().is_namespaced() {
            view = view.with_namespace(self.namespace().map(str::to_owned));
        }
        let list = view.list().await?;
        let owned = |item: &Item<C>| {
            let owners = &item.meta().owner_references;
            owners.iter().any(|owner| owner.uid == self.uid())
        };
        Ok(list.into_iter().filter(owned).collect())
    }

    /// Returns the events of this object, oldest first. Clusters delete events after about
    /// an hour.
    ///
    /// # Errors
    /// The same as [`View::list`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # use serde_json::json;
    /// # let configmaps = cluster.configmaps().in_namespace("default")?;
    /// # let about = configmaps.create(&json!({"metadata": {"name": "settings"}})).await?;
    /// # cluster.events().in_namespace("default")?.create(&json!({
    /// #     "metadata": {"name": "settings.1"}, "reason": "Reloaded", "message": "read anew",
    /// #     "involvedObject": {
    /// #         "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default",
    /// #         "name": "settings", "uid": about.uid(),
    /// #     },
    /// # })).await?;
    /// let settings = configmaps.fetch("settings").await?;
    /// let events = settings.events().await?;
    /// for event in &events {
    ///     println!("{}: {}", event.reason()?, event.message()?);
    /// }
    /// assert_eq!(events[0].reason()?, "Reloaded");
    /// # Ok(()) });
    /// ```
    pub async fn events(&self) -> Result<Vec<Item<Event>>> {
        let about = FieldSelector::everything()
            .with("involvedObject.uid", self.uid())
            .with("involvedObject.name", self.name());
        let view = self.cluster().events().fields(about);
        let view = view.with_namespace(self.namespace().map(str::to_owned));
        let mut events = view.list().await?.items;
        events.sort_by_cached_key(|event| event.last_seen().ok().flatten());
        Ok(events)
    }

    /// The selector in the spec, in either form. Without a selector, it selects everything.
    fn selector(&self) -> Result<LabelSelector> {
        let what = || format!("spec.selector of {}", self.described());
        let selector: Option<Value> = self.field(&["spec", "selector"])?;
        let Some(selector) = selector else {
            return Ok(LabelSelector::everything());
        };
        let structured = ["matchLabels", "matchExpressions"]
            .iter()
            .any(|key| selector.get(key).is_some());
        let structured: StructuredSelector = if structured {
            serde_json::from_value(selector)
        } else {
            serde_json::from_value(serde_json::json!({ "matchLabels": selector }))
        }
        .map_err(|error| Error::decode(what(), error))?;
        LabelSelector::try_from(structured).map_err(|error| Error::decode(what(), error))
    }
}
