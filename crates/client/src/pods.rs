//! What only pods have: logs, being bound to a node, and being evicted.

use bytes::Bytes;
use futures::Stream;
use http::Method;
use serde_json::json;

use crate::{
    error::Result,
    item::Item,
    kinds::Pod,
    options::{DeleteOptions, LogOptions},
    transport::{Call, pieces},
    view::View,
};

/// ```
/// # longshore_embedded::example_with_pods(async |cluster| {
/// use std::time::Duration;
/// use futures::TryStreamExt;
/// use longshore_client::{LogOptions, until};
/// # let command = serde_json::json!(["sh", "-c", "echo one; echo two"]);
/// # let containers = serde_json::json!([{"name": "main", "image": "any", "command": command}]);
/// # let spec = serde_json::json!({"restartPolicy": "Never", "containers": containers});
/// let pods = cluster.pods().in_namespace("default")?;
/// # pods.create(&serde_json::json!({"metadata": {"name": "talker"}, "spec": spec})).await?;
/// let pod = pods.wait("talker", until::finished, Duration::from_secs(60)).await?;
///
/// let pieces: Vec<_> = pods.logs("talker", &LogOptions::default()).await?.try_collect().await?;
/// assert_eq!(pieces.concat(), b"one\ntwo\n");
/// let last = LogOptions { tail_lines: Some(1), ..LogOptions::default() };
/// let pieces: Vec<_> = pod.logs(&last).await?.try_collect().await?;
/// assert_eq!(pieces.concat(), b"two\n");
/// # Ok(()) });
/// ```
impl View<Pod> {
    /// A container's log, as it comes; pieces do not end at lines. The view
    /// must have a namespace.
    ///
    /// # Errors
    /// At the call as the server refuses: a container that still waits is a
    /// 400. Later, in the stream, when the connection breaks.
    pub async fn logs(
        &self,
        name: &str,
        options: &LogOptions,
    ) -> Result<impl Stream<Item = Result<Bytes>> + Send + use<>> {
        let path = format!("{}/log", self.object_path(name)?);
        let mut call = Call::get(path).queries(options.query());
        call.accept = "*/*";
        let response = self.cluster().send(&call).await?;
        Ok(pieces(self.cluster().transport.clone(), response))
    }

    /// Gives a pod its node, as a scheduler does.
    ///
    /// # Errors
    /// A conflict when it has one already.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # let spec = serde_json::json!({"containers": [{"name": "main", "image": "busybox"}]});
    /// # let pod = serde_json::json!({"metadata": {"name": "web"}, "spec": spec});
    /// let pods = cluster.pods().in_namespace("default")?;
    /// # pods.create(&pod).await?;
    /// pods.bind("web", "node-1").await?;
    /// assert_eq!(pods.fetch("web").await?.node()?.as_deref(), Some("node-1"));
    /// assert!(pods.bind("web", "node-2").await.unwrap_err().is_conflict());
    /// # Ok(()) });
    /// ```
    pub async fn bind(&self, name: &str, node: &str) -> Result<()> {
        let path = format!("{}/binding", self.object_path(name)?);
        let call = Call::new(Method::POST, path).json(&json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": name, "namespace": self.namespace() },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        }))?;
        self.cluster().bytes(&call).await.map(|_| ())
    }

    /// Deletes a pod as far as its PodDisruptionBudget allows it. That it is
    /// gone already is no error.
    ///
    /// # Errors
    /// [`Error::is_too_many_requests`](crate::Error::is_too_many_requests)
    /// when the budget is used up: try again after
    /// [`Error::retry_after`](crate::Error::retry_after).
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
    /// // Nobody has counted the budget's pods yet.
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
    /// As [`View::logs`], of this pod.
    ///
    /// # Errors
    /// As [`View::logs`].
    pub async fn logs(
        &self,
        options: &LogOptions,
    ) -> Result<impl Stream<Item = Result<Bytes>> + Send + use<>> {
        self.view().logs(self.name(), options).await
    }

    /// As [`View::evict`], of this pod.
    ///
    /// # Errors
    /// As [`View::evict`].
    pub async fn evict(&self, options: &DeleteOptions) -> Result<()> {
        self.view().evict(self.name(), options).await
    }
}
