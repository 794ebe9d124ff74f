//! Requests by path.

use std::time::Duration;

use bytes::Bytes;
use longshore_model::FieldSelector;
use serde_json::Value;

use super::{Mirror, Taken, run, waits};
use crate::{
    error::Result,
    options::Patch,
    proxy::{self, ApiPath},
};

/// Requests by path: see [`ApiServerProxy`](crate::ApiServerProxy).
#[derive(Debug, Clone)]
pub struct ApiServerProxy {
    inner: proxy::ApiServerProxy,
}

impl ApiServerProxy {
    fn inner(&self) -> &proxy::ApiServerProxy {
        &self.inner
    }

    pub(super) fn new(inner: proxy::ApiServerProxy) -> Self {
        Self { inner }
    }

    /// Like [`ApiServerProxy::urljoin`](crate::ApiServerProxy::urljoin).
    #[must_use]
    pub fn urljoin(&self, parts: &[&str]) -> String {
        self.inner.urljoin(parts)
    }

    waits! {
        "ApiServerProxy": get(path: impl ApiPath, query: &[(&str, &str)]) -> Value;
        "ApiServerProxy": get_as(path: impl ApiPath, accept: &'static str) -> Value;
        "ApiServerProxy": get_bytes(path: impl ApiPath, query: &[(&str, &str)]) -> Bytes;
        "ApiServerProxy": post(path: impl ApiPath, query: &[(&str, &str)], body: &Value) -> Value;
        "ApiServerProxy": put(path: impl ApiPath, query: &[(&str, &str)], body: &Value) -> Value;
        "ApiServerProxy": patch(path: impl ApiPath, query: &[(&str, &str)], patch: &Patch) -> Value;
        "ApiServerProxy": delete(path: impl ApiPath, query: &[(&str, &str)], body: Option<&Value>) -> Value;
    }

    /// Like [`ApiServerProxy::stream`](crate::ApiServerProxy::stream).
    ///
    /// # Errors
    /// The errors of [`ApiServerProxy::stream`](crate::ApiServerProxy::stream).
    pub fn stream(
        &self,
        path: impl ApiPath,
        query: &[(&str, &str)],
    ) -> Result<Box<dyn Iterator<Item = Result<Bytes>> + Send>> {
        let stream = run(self.inner.stream(path, query))?;
        Ok(Box::new(Taken::new(stream)))
    }

    /// Like [`ApiServerProxy::watch`](crate::ApiServerProxy::watch).
    ///
    /// # Errors
    /// The errors of [`ApiServerProxy::watch`](crate::ApiServerProxy::watch).
    pub fn watch(&self, path: impl ApiPath, query: &[(&str, &str)]) -> Result<ProxyWatch> {
        run(self.inner.watch(path, query)).map(Mirror::mirror)
    }

    /// Like [`ApiServerProxy::watch_since`](crate::ApiServerProxy::watch_since).
    ///
    /// # Errors
    /// The errors of [`ApiServerProxy::watch_since`](crate::ApiServerProxy::watch_since).
    pub fn watch_since(&self, path: impl ApiPath, version: &str) -> Result<ProxyWatch> {
        run(self.inner.watch_since(path, version)).map(Mirror::mirror)
    }
}

/// The events of a watch by path: see [`ProxyWatch`](crate::ProxyWatch). As an iterator, it
/// blocks without a limit and ends with the watch.
#[derive(Debug)]
pub struct ProxyWatch {
    inner: proxy::ProxyWatch,
}

impl Mirror for proxy::ProxyWatch {
    type Here = ProxyWatch;

    fn mirror(self) -> ProxyWatch {
        ProxyWatch { inner: self }
    }
}

impl ProxyWatch {
    /// Like [`ProxyWatch::matching`](crate::ProxyWatch::matching).
    ///
    /// # Errors
    /// The errors of [`ProxyWatch::matching`](crate::ProxyWatch::matching).
    pub fn matching(self, fields: FieldSelector) -> Result<Self> {
        self.inner.matching(fields).map(Mirror::mirror)
    }

    /// Like [`ProxyWatch::next`](crate::ProxyWatch::next).
    ///
    /// # Errors
    /// The errors of [`ProxyWatch::next`](crate::ProxyWatch::next).
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Option<Value>> {
        run(self.inner.next(timeout))
    }

    /// Ends the watch and closes its connection.
    pub fn close(&mut self) {
        self.inner.close();
    }
}

impl Iterator for ProxyWatch {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Self::Item> {
        Self::next(self, None).transpose()
    }
}
