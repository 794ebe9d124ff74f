//! Reads the logs of containers.

mod all;
mod lines;

use bytes::Bytes;
use futures::Stream;
use http::Response;
use kube_client::client::Body;

use crate::{
    error::Result,
    item::Item,
    kinds::Pod,
    options::LogOptions,
    transport::{Call, chunks},
    view::View,
};
pub use all::LogLine;

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
/// let chunks: Vec<_> = pods.logs("talker", &LogOptions::default()).await?.try_collect().await?;
/// assert_eq!(chunks.concat(), b"one\ntwo\n");
/// let last = LogOptions { tail_lines: Some(1), ..LogOptions::default() };
/// let chunks: Vec<_> = pod.logs(&last).await?.try_collect().await?;
/// assert_eq!(chunks.concat(), b"two\n");
///
/// // Line by line, and the lines of all containers.
/// let lines: Vec<_> = pod.log_lines(&last).await?.try_collect().await?;
/// assert_eq!(lines, ["two"]);
/// let lines: Vec<_> = pod.logs_all(&last).await?.try_collect().await?;
/// assert_eq!((&*lines[0].container, &*lines[0].line), ("main", "two"));
/// # Ok(()) });
/// ```
impl View<Pod> {
    /// Streams the log of a container in chunks, which do not end at line ends. The view must
    /// have a namespace. The log of a pod without a node is empty, also with
    /// [`LogOptions::follow`].
    ///
    /// # Errors
    /// The server's errors, for example 400 if the container has not started. An item of the stream
    /// is an error if the connection is lost.
    pub async fn logs(
        &self,
        name: &str,
        options: &LogOptions,
    ) -> Result<impl Stream<Item = Result<Bytes>> + Send + use<>> {
        let response = self.log_response(name, options).await?;
        Ok(chunks(self.cluster().transport.clone(), response))
    }

    /// Streams the lines of a container's log, without their line ends. A line of more than
    /// 1 MiB is split.
    ///
    /// # Errors
    /// The same as [`View::logs`].
    pub async fn log_lines(
        &self,
        name: &str,
        options: &LogOptions,
    ) -> Result<impl Stream<Item = Result<String>> + Send + use<>> {
        Ok(lines::lines(self.logs(name, options).await?))
    }

    async fn log_response(&self, name: &str, options: &LogOptions) -> Result<Response<Body>> {
        let path = format!("{}/log", self.object_path(name)?);
        let mut call = Call::get(path).queries(options.query());
        call.accept = "*/*";
        self.cluster().send(&call).await
    }
}

impl Item<Pod> {
    /// Like [`View::logs`], for this pod.
    ///
    /// # Errors
    /// The same as [`View::logs`].
    pub async fn logs(
        &self,
        options: &LogOptions,
    ) -> Result<impl Stream<Item = Result<Bytes>> + Send + use<>> {
        self.view().logs(self.name(), options).await
    }

    /// Like [`View::log_lines`], for this pod.
    ///
    /// # Errors
    /// The same as [`View::logs`].
    pub async fn log_lines(
        &self,
        options: &LogOptions,
    ) -> Result<impl Stream<Item = Result<String>> + Send + use<>> {
        self.view().log_lines(self.name(), options).await
    }
}
