//! Requests by path.

use bytes::Bytes;
use serde_json::Value;

use super::{Taken, run, waits};
use crate::{error::Result, options::Patch, proxy};

/// Requests by path: see [`ApiServerProxy`](crate::ApiServerProxy).
#[derive(Debug, Clone)]
pub struct ApiServerProxy {
    inner: proxy::ApiServerProxy,
}

impl ApiServerProxy {
    pub(super) fn new(inner: proxy::ApiServerProxy) -> Self {
        Self { inner }
    }

    /// As [`ApiServerProxy::urljoin`](crate::ApiServerProxy::urljoin).
    #[must_use]
    pub fn urljoin(&self, parts: &[&str]) -> String {
        self.inner.urljoin(parts)
    }

    waits! {
        "ApiServerProxy": get(path: &str, query: &[(&str, &str)]) -> Value;
        "ApiServerProxy": get_bytes(path: &str, query: &[(&str, &str)]) -> Bytes;
        "ApiServerProxy": post(path: &str, query: &[(&str, &str)], body: &Value) -> Value;
        "ApiServerProxy": put(path: &str, query: &[(&str, &str)], body: &Value) -> Value;
        "ApiServerProxy": patch(path: &str, query: &[(&str, &str)], patch: &Patch) -> Value;
        "ApiServerProxy": delete(path: &str, query: &[(&str, &str)], body: Option<&Value>) -> Value;
    }

    /// As [`ApiServerProxy::stream`](crate::ApiServerProxy::stream).
    ///
    /// # Errors
    /// As there.
    pub fn stream(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<impl Iterator<Item = Result<Bytes>> + use<>> {
        run(self.inner.stream(path, query)).map(Taken::new)
    }

    /// As [`ApiServerProxy::watch`](crate::ApiServerProxy::watch).
    ///
    /// # Errors
    /// As there.
    pub fn watch(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<impl Iterator<Item = Result<Value>> + use<>> {
        run(self.inner.watch(path, query)).map(Taken::new)
    }
}
