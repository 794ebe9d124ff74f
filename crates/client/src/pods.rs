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
    stream::pieces,
    transport::Call,
    view::View,
};

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
        Ok(pieces(self.cluster().clone(), response))
    }

    /// Gives a pod its node, as a scheduler does.
    ///
    /// # Errors
    /// A conflict when it has one already.
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
