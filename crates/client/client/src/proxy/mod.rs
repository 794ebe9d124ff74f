//! Requests by path, for resources that have no view.

mod forward;
mod path;
mod watch;

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use http::Method;
use serde_json::Value;

use crate::{
    cluster::Cluster,
    error::Result,
    options::{Patch, Writing},
    transport::{Call, Lines, Transport, chunks, parse},
};
pub use path::ApiPath;
pub use watch::ProxyWatch;

/// Requests to the API server by path. A status code other than 2xx is an
/// [`Error`](crate::Error).
///
/// A path is a string, or an array of components, which are percent-encoded. See
/// [`ApiPath`].
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use futures::{StreamExt, TryStreamExt};
/// use longshore_client::Patch;
/// use serde_json::json;
/// let proxy = cluster.proxy();
/// assert_eq!(proxy.get_bytes("/readyz", &[]).await?, "ok");
///
/// let maps = "/api/v1/namespaces/default/configmaps";
/// let map = json!({"metadata": {"name": "a"}, "data": {"colour": "red"}});
/// let mut made = proxy.post(maps, &[("fieldManager", "painter")], &map).await?;
/// made["data"]["colour"] = "blue".into();
/// let path = format!("{maps}/a");
/// proxy.put(&path, &[], &made).await?;
/// proxy.patch(&path, &[], &Patch::merge(json!({"data": {"shape": "round"}}))).await?;
/// let read = proxy.get(&path, &[]).await?;
/// assert_eq!(read["data"], json!({"colour": "blue", "shape": "round"}));
///
/// let mut events = Box::pin(proxy.watch(maps, &[("resourceVersion", "0")]).await?);
/// let event = events.next().await.expect("existing objects are sent first")?;
/// assert_eq!(event["type"], "ADDED");
/// assert_eq!(event["object"]["metadata"]["name"], "a");
///
/// let chunks: Vec<_> = proxy.stream(&path, &[("pretty", "true")]).await?.try_collect().await?;
/// assert!(!chunks.concat().is_empty());
/// proxy.delete(&path, &[], Some(&json!({"propagationPolicy": "Background"}))).await?;
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct ApiServerProxy {
    transport: Transport,
}

impl Cluster {
    /// Returns a client for requests by path, for resources that have no view.
    #[must_use]
    pub fn proxy(&self) -> ApiServerProxy {
        ApiServerProxy {
            transport: self.transport.clone(),
        }
    }
}

impl ApiServerProxy {
    /// Returns the full URL of a path. A part can have several segments. The path of the
    /// cluster's URL is preserved.
    ///
    /// ```
    /// # let cluster = longshore_client::Cluster::from_url("http://localhost:8001/base/")?;
    /// let proxy = cluster.proxy();
    /// assert_eq!(proxy.urljoin(&["api", "v1", "nodes"]), "http://localhost:8001/base/api/v1/nodes");
    /// assert_eq!(proxy.urljoin(&["/api/v1"]), "http://localhost:8001/base/api/v1");
    /// # Ok::<(), longshore_client::Error>(())
    /// ```
    #[must_use]
    pub fn urljoin(&self, parts: &[&str]) -> String {
        let segments = parts
            .iter()
            .map(|part| part.trim_matches('/'))
            .filter(|part| !part.is_empty());
        let mut url = self.transport.url().to_owned();
        for segment in segments {
            url.push('/');
            url.push_str(segment);
        }
        url
    }

    fn call(method: Method, path: impl ApiPath, query: &[(&str, &str)]) -> Result<Call> {
        let query = query.iter().copied();
        let query = query.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Call::new(method, path.to_path()?).queries(query))
    }

    async fn value(&self, call: Call) -> Result<Value> {
        let bytes = self.transport.bytes(&call).await?;
        if bytes.trim_ascii().is_empty() {
            return Ok(Value::Null);
        }
        parse(&call, &bytes)
    }

    /// Sends a GET request and parses the JSON of the response.
    ///
    /// # Errors
    /// The server's errors; [`Error::Decode`](crate::Error::Decode) if the response is not JSON.
    pub async fn get(&self, path: impl ApiPath, query: &[(&str, &str)]) -> Result<Value> {
        self.value(Self::call(Method::GET, path, query)?).await
    }

    /// Like [`ApiServerProxy::get`], for a document that the server has in several forms. `accept`
    /// has the media types of the requested form.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    /// let groups = cluster.proxy().get_as("/apis", accept).await?;
    /// assert_eq!(groups["kind"], "APIGroupDiscoveryList");
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// The same as [`ApiServerProxy::get`].
    pub async fn get_as(&self, path: impl ApiPath, accept: &'static str) -> Result<Value> {
        let mut call = Self::call(Method::GET, path, &[])?;
        call.accept = accept;
        self.value(call).await
    }

    /// Sends a GET request and returns the body of the response, of any media type.
    ///
    /// # Errors
    /// The server's errors.
    pub async fn get_bytes(&self, path: impl ApiPath, query: &[(&str, &str)]) -> Result<Bytes> {
        let mut call = Self::call(Method::GET, path, query)?;
        call.accept = "*/*";
        self.transport.bytes(&call).await
    }

    /// Sends a POST request, which creates an object.
    ///
    /// # Errors
    /// The same as [`ApiServerProxy::get`].
    pub async fn post(
        &self,
        path: impl ApiPath,
        query: &[(&str, &str)],
        body: &Value,
    ) -> Result<Value> {
        self.value(Self::call(Method::POST, path, query)?.json(body)?)
            .await
    }

    /// Sends a PUT request, which replaces an object.
    ///
    /// # Errors
    /// The same as [`ApiServerProxy::get`].
    pub async fn put(
        &self,
        path: impl ApiPath,
        query: &[(&str, &str)],
        body: &Value,
    ) -> Result<Value> {
        self.value(Self::call(Method::PUT, path, query)?.json(body)?)
            .await
    }

    /// Sends a PATCH request, which changes an object.
    ///
    /// # Errors
    /// The same as [`ApiServerProxy::get`].
    pub async fn patch(
        &self,
        path: impl ApiPath,
        query: &[(&str, &str)],
        patch: &Patch,
    ) -> Result<Value> {
        let mut call =
            Self::call(Method::PATCH, path, query)?.queries(patch.query(&Writing::default()));
        call.content_type = patch.kind.media_type();
        self.value(call.json(&patch.body)?).await
    }

    /// Sends a DELETE request. `body` may contain `DeleteOptions`.
    ///
    /// # Errors
    /// The same as [`ApiServerProxy::get`].
    pub async fn delete(
        &self,
        path: impl ApiPath,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value> {
        let call = Self::call(Method::DELETE, path, query)?;
        self.value(body.map_or(Ok(call.clone()), |body| call.json(body))?)
            .await
    }

    /// Sends a GET request and streams the body of the response in chunks.
    ///
    /// # Errors
    /// The server's errors. An item of the stream is an error if the connection is lost.
    pub async fn stream(
        &self,
        path: impl ApiPath,
        query: &[(&str, &str)],
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let mut call = Self::call(Method::GET, path, query)?;
        call.accept = "*/*";
        let response = self.transport.send(&call).await?;
        Ok(chunks(self.transport.clone(), response).boxed())
    }

    /// Watches a collection or object by path. The query can contain `resourceVersion`
    /// and the server's selectors; [`ProxyWatch::matching`] selects by any field.
    ///
    /// # Errors
    /// The same as [`ApiServerProxy::stream`].
    pub async fn watch(&self, path: impl ApiPath, query: &[(&str, &str)]) -> Result<ProxyWatch> {
        let call = Self::call(Method::GET, path, query)?.with("watch", "true");
        let response = self.transport.send(&call).await?;
        let lines = Lines::new(self.transport.clone(), &call, response)?;
        Ok(ProxyWatch::new(&call, lines))
    }

    /// Like [`ApiServerProxy::watch`], for changes after a resource version.
    ///
    /// # Errors
    /// The same as [`ApiServerProxy::stream`]. If the version has expired, the first event has the type
    /// `ERROR`, or the call returns an error with
    /// [`Error::is_expired`](crate::Error::is_expired).
    pub async fn watch_since(&self, path: impl ApiPath, version: &str) -> Result<ProxyWatch> {
        self.watch(path, &[("resourceVersion", version)]).await
    }
}
