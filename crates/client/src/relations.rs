//! What belongs to what: owners, children, the pods of a workload, the events
//! of an object.

use longshore_model::{
    FieldSelector, Gvk, LabelSelector, OwnerReference, selector::StructuredSelector,
};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    item::Item,
    kind::{Any, Kind},
    kinds::{
        CronJob, DaemonSet, Deployment, Event, Job, Node, Pod, ReplicaSet, ReplicationController,
        Service, StatefulSet,
    },
    view::View,
};

impl<K: Kind> Item<K> {
    /// The object that this one belongs to: the one that controls it, or else
    /// the first of its owners. `None` when it belongs to nothing, or its owner
    /// is gone.
    ///
    /// # Errors
    /// As the server refuses; [`Error::Invalid`] when the cluster does not know
    /// the owner's kind.
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
    /// // All of them, for an object may have several.
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

    /// All objects that this one belongs to and that are still there.
    ///
    /// # Errors
    /// As [`Item::owner`].
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
        // A name that is used again is another object.
        Ok(found.filter(|found| found.uid() == owner.uid))
    }

    /// The objects of a kind that belong to this one directly.
    ///
    /// # Errors
    /// As [`View::list`].
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
    pub async fn children<C: Kind + Default>(&self) -> Result<Vec<Item<C>>> {
        self.children_in(&self.cluster().view()).await
    }

    /// The objects of a view that belong to this one directly; for kinds that
    /// have no type here.
    ///
    /// # Errors
    /// As [`View::list`].
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
    pub async fn children_in<C: Kind>(&self, view: &View<C>) -> Result<Vec<Item<C>>> {
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

    /// What happened to this object, oldest first. The cluster forgets events
    /// after an hour or so.
    ///
    /// # Errors
    /// As [`View::list`].
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

    /// The pods whose labels the selector at a path of the spec matches and
    /// that belong to this object.
    async fn selected(&self) -> Result<Vec<Item<Pod>>> {
        let pods = self.cluster().pods().labels(self.selector()?);
        self.children_in(&pods).await
    }

    /// The selector in the spec, in either form; without one, everything.
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

macro_rules! pods {
    ($($kind:ty,)*) => {
        $(impl Item<$kind> {
            /// Its pods, in the server's order.
            ///
            /// # Errors
            /// As [`View::list`].
            pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
                self.selected().await
            }
        })*
    };
}

pods! { DaemonSet, Job, ReplicaSet, ReplicationController, StatefulSet, }

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use serde_json::json;
/// # let deployments = cluster.deployments().in_namespace("default")?;
/// # let labels = json!({"app": "web"});
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
/// # let spec = json!({"selector": {"matchLabels": labels}, "template": template});
/// # let web = json!({"metadata": {"name": "web"}, "spec": spec});
/// # let web = deployments.create(&web).await?;
/// # let owned = |kind, name, uid| json!([{
/// #     "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true,
/// # }]);
/// # let owner = owned("Deployment", "web", web.uid());
/// # let meta = json!({"name": "web-5d4c", "labels": labels, "ownerReferences": owner});
/// # let sets = cluster.replicasets().in_namespace("default")?;
/// # let set = sets.create(&json!({"metadata": meta, "spec": spec})).await?;
/// # let owner = owned("ReplicaSet", "web-5d4c", set.uid());
/// # let meta = json!({"name": "web-5d4c-x2k7p", "labels": labels, "ownerReferences": owner});
/// # let pods = cluster.pods().in_namespace("default")?;
/// # pods.create(&json!({"metadata": meta, "spec": template["spec"]})).await?;
/// let web = deployments.fetch("web").await?;
/// let sets = web.replica_sets().await?;
/// assert_eq!(sets[0].name(), "web-5d4c");
/// let pods = web.pods().await?;
/// assert_eq!(pods[0].name(), "web-5d4c-x2k7p");
/// // There is one ReplicaSet, so all the pods are its own.
/// assert_eq!(sets[0].pods().await?, pods);
/// # Ok(()) });
/// ```
impl Item<Deployment> {
    /// Its ReplicaSets: one for each of its templates that is remembered.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn replica_sets(&self) -> Result<Vec<Item<ReplicaSet>>> {
        let sets = self.cluster().replicasets().labels(self.selector()?);
        self.children_in(&sets).await
    }

    /// The pods of all its ReplicaSets.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
        let sets = self.replica_sets().await?;
        let uids: Vec<&str> = sets.iter().map(Item::uid).collect();
        grandchildren(self, &uids, self.selector()?).await
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use serde_json::json;
/// # let cronjobs = cluster.cronjobs().in_namespace("default")?;
/// # let pod = json!({
/// #     "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}],
/// # });
/// # let job = json!({"template": {"spec": pod}});
/// # let nightly = cronjobs.create(&json!({
/// #     "metadata": {"name": "nightly"},
/// #     "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job}},
/// # })).await?;
/// # let owned = |kind, name, uid| json!([{
/// #     "apiVersion": "batch/v1", "kind": kind, "name": name, "uid": uid, "controller": true,
/// # }]);
/// # let owner = owned("CronJob", "nightly", nightly.uid());
/// # let meta = json!({"name": "nightly-1", "ownerReferences": owner});
/// # let jobs = cluster.jobs().in_namespace("default")?;
/// # let job = jobs.create(&json!({"metadata": meta, "spec": job})).await?;
/// # let owner = owned("Job", "nightly-1", job.uid());
/// # let meta = json!({"name": "nightly-1-x2k7p", "ownerReferences": owner});
/// # let pods = cluster.pods().in_namespace("default")?;
/// # pods.create(&json!({"metadata": meta, "spec": pod})).await?;
/// let nightly = cronjobs.fetch("nightly").await?;
/// assert_eq!(nightly.jobs().await?[0].name(), "nightly-1");
/// assert_eq!(nightly.pods().await?[0].name(), "nightly-1-x2k7p");
/// # Ok(()) });
/// ```
impl Item<CronJob> {
    /// The Jobs it has made and that are still there.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn jobs(&self) -> Result<Vec<Item<Job>>> {
        self.children().await
    }

    /// The pods of all its Jobs.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
        let jobs = self.jobs().await?;
        let uids: Vec<&str> = jobs.iter().map(Item::uid).collect();
        grandchildren(self, &uids, LabelSelector::everything()).await
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use serde_json::json;
/// # let services = cluster.services().in_namespace("default")?;
/// # let ports = json!([{"port": 80}]);
/// # let spec = json!({"selector": {"app": "web"}, "ports": ports});
/// # services.create(&json!({"metadata": {"name": "web"}, "spec": spec})).await?;
/// # services.create(&json!({"metadata": {"name": "outside"}, "spec": {"ports": ports}})).await?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let meta = json!({"name": "web-1", "labels": {"app": "web"}});
/// # let pods = cluster.pods().in_namespace("default")?;
/// # pods.create(&json!({"metadata": meta, "spec": {"containers": containers}})).await?;
/// let behind = services.fetch("web").await?.pods().await?;
/// assert_eq!(behind.iter().map(|pod| pod.name()).collect::<Vec<_>>(), ["web-1"]);
/// // A Service without a selector has none.
/// assert!(services.fetch("outside").await?.pods().await?.is_empty());
/// # Ok(()) });
/// ```
impl Item<Service> {
    /// The pods that its selector matches; none for a Service without one.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
        let selector = self.selector()?;
        if selector.is_everything() {
            return Ok(Vec::new());
        }
        let pods = self.cluster().pods().labels(selector);
        let pods = pods.with_namespace(self.namespace().map(str::to_owned));
        Ok(pods.list().await?.items)
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use serde_json::json;
///
/// # let pods = cluster.pods().in_namespace("default")?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let web = json!({"metadata": {"name": "web"}, "spec": {"containers": containers}});
/// let pod = pods.create(&web).await?;
/// let node = cluster.nodes().create(&json!({"metadata": {"name": "n1"}})).await?;
/// assert!(node.pods().await?.is_empty());
///
/// pods.bind(pod.name(), node.name()).await?;
/// assert_eq!(node.pods().await?[0].name(), "web");
/// # Ok(()) });
/// ```
impl Item<Node> {
    /// The pods that are on it, of all namespaces.
    ///
    /// # Errors
    /// As [`View::list`].
    pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
        let here = FieldSelector::everything().with("spec.nodeName", self.name());
        Ok(self.cluster().pods().fields(here).list().await?.items)
    }
}

async fn grandchildren<K: Kind>(
    item: &Item<K>,
    parents: &[&str],
    selector: LabelSelector,
) -> Result<Vec<Item<Pod>>> {
    let pods = item.cluster().pods().labels(selector);
    let pods = pods.with_namespace(item.namespace().map(str::to_owned));
    let list = pods.list().await?;
    let owned = |pod: &Item<Pod>| {
        let owners = &pod.meta().owner_references;
        owners
            .iter()
            .any(|owner| parents.contains(&owner.uid.as_str()))
    };
    Ok(list.into_iter().filter(owned).collect())
}
