//! Binds pods to nodes.

use http::Method;
use serde_json::json;

use crate::{error::Result, kinds::Pod, transport::Call, view::View};

impl View<Pod> {
    /// Binds a pod to a node, as a scheduler does.
    ///
    /// # Errors
    /// A conflict if the pod already has a node.
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
}
