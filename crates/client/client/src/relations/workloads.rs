//! The pods of workloads, Services and nodes, and the objects in between.

use longshore_model::{FieldSelector, LabelSelector};

use crate::{
    error::Result,
    item::Item,
    kind::Object,
    kinds::{
        CronJob, DaemonSet, Deployment, Job, Node, Pod, ReplicaSet, ReplicationController, Service,
        StatefulSet,
    },
    view::View,
};

impl<K: Object> Item<K> {
    /// Returns the pods that this object owns and that the selector in its spec matches.
    async fn selected(&self) -> Result<Vec<Item<Pod>>> {
        let pods = narrow(self.cluster().pods(), self.selector()?);
        self.children_in(&pods).await
    }
}

macro_rules! pods {
    ($($kind:ty,)*) => {
        $(impl Item<$kind> {
            /// Returns its pods, in the order of the server.
            ///
            /// # Errors
            /// The same as [`View::list`](crate::View::list).
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
/// // There is only one ReplicaSet, so all pods belong to it.
/// assert_eq!(sets[0].pods().await?, pods);
/// # Ok(()) });
/// ```
impl Item<Deployment> {
    /// Returns its ReplicaSets: one for each template in its history.
    ///
    /// # Errors
    /// The same as [`View::list`](crate::View::list).
    pub async fn replica_sets(&self) -> Result<Vec<Item<ReplicaSet>>> {
        let sets = narrow(self.cluster().replicasets(), self.selector()?);
        self.children_in(&sets).await
    }

    /// Returns the pods of all its ReplicaSets.
    ///
    /// # Errors
    /// The same as [`View::list`](crate::View::list).
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
    /// Returns its Jobs that still exist.
    ///
    /// # Errors
    /// The same as [`View::list`](crate::View::list).
    pub async fn jobs(&self) -> Result<Vec<Item<Job>>> {
        self.children().await
    }

    /// Returns the pods of all its Jobs.
    ///
    /// # Errors
    /// The same as [`View::list`](crate::View::list).
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
/// // A Service without a selector has no pods.
/// assert!(services.fetch("outside").await?.pods().await?.is_empty());
/// # Ok(()) });
/// ```
impl Item<Service> {
    /// Returns the pods that its selector matches; none without a selector.
    ///
    /// # Errors
    /// The same as [`View::list`](crate::View::list).
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
    /// Returns the pods that are bound to the node, in all namespaces.
    ///
    /// # Errors
    /// The same as [`View::list`](crate::View::list).
    pub async fn pods(&self) -> Result<Vec<Item<Pod>>> {
        let here = FieldSelector::everything().with("spec.nodeName", self.name());
        Ok(self.cluster().pods().fields(here).list().await?.items)
    }
}

/// The view with the selector, unless it selects everything: then only the owners decide.
fn narrow<K: Object>(view: View<K>, selector: LabelSelector) -> View<K> {
    if selector.is_everything() {
        return view;
    }
    view.labels(selector)
}

async fn grandchildren<K: Object>(
    item: &Item<K>,
    parents: &[&str],
    selector: LabelSelector,
) -> Result<Vec<Item<Pod>>> {
    let pods = narrow(item.cluster().pods(), selector);
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
