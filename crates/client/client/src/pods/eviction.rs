//! Evicts pods.

use http::Method;
use serde_json::json;

use crate::{
    error::Result, item::Item, kinds::Pod, options::DeleteOptions, transport::Call, view::View,
};

impl View<Pod> {
    /// Evicts a pod: deletes it if its PodDisruptionBudget allows this. Succeeds if the pod
    /// does not exist. The request is not retried.
    ///
    /// # Errors
    /// [`Error::is_too_many_requests`](crate::Error::is_too_many_requests) if the budget
    /// allows no eviction. Retry after [`Error::retry_after`](crate::Error::retry_after).
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use longshore_client::{DeleteOptions, Patch};
    /// use serde_json::json;
    /// # let container = json!({"name": "main", "image": "busybox"});
    /// # let metadata = json!({"name": "web", "labels": {"app": "web"}});
    /// # let spec = json!({"nodeName": "node-1", "containers": [container]});
    /// let pods = cluster.pods().in_namespace("default")?;
    /// # pods.create(&json!({"metadata": metadata, "spec": spec})).await?;
    /// # let ready = json!({"type": "Ready", "status": "True"});
    /// # let status = json!({"status": {"phase": "Running", "conditions": [ready]}});
    /// # pods.patch_status("web", &Patch::merge(status)).await?;
    /// let budgets = cluster.kind("pdb").await?.in_namespace("default")?;
    /// let selector = json!({"matchLabels": {"app": "web"}});
    /// let spec = json!({"minAvailable": 1, "selector": selector});
    /// budgets.create(&json!({"metadata": {"name": "guard"}, "spec": spec})).await?;
    ///
    /// // The status of the budget has not been set yet.
    /// let error = pods.evict("web", &DeleteOptions::default()).await.unwrap_err();
    /// assert!(error.is_too_many_requests() && error.retry_after().is_some());
    ///
    /// let allowed = json!({
    ///     "observedGeneration": 1, "disruptionsAllowed": 1,
    ///     "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
    /// });
    /// budgets.patch_status("guard", &Patch::merge(json!({"status": allowed}))).await?;
    /// pods.evict("web", &DeleteOptions::default()).await?;
    /// assert!(pods.fetch("web").await?.meta().deletion_timestamp.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn evict(&self, name: &str, options: &DeleteOptions) -> Result<()> {
        let path = format!("{}/eviction", self.object_path(name)?);
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": name, "namespace": self.namespace() },
            "deleteOptions": options.body(&self.writing),
        });
        let mut call = Call::new(Method::POST, path)
            .queries(self.writing.query())
            .json(&body)?;
        call.once = true;
        match self.cluster().bytes(&call).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

impl Item<Pod> {
    /// Like [`View::evict`], for this pod.
    ///
    /// # Errors
    /// The same as [`View::evict`].
    pub async fn evict(&self, options: &DeleteOptions) -> Result<()> {
        self.view().evict(self.name(), options).await
    }
}
