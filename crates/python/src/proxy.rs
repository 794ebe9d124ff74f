//! Requests by path, for resources that have no view.

use longshore::{
    Error, FieldSelector,
    client::{ApiServerProxy, ProxyWatch as Inner},
};
use pyo3::{
    exceptions::{PyTimeoutError, PyValueError},
    prelude::*,
};
use serde_json::Value;
use tokio::sync::{Mutex, watch};

use crate::{
    errors::raise,
    item::patch,
    value::{from_serde, to_json},
    wait::{limit, wait},
};

/// Sends requests by path.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Proxy {
    inner: ApiServerProxy,
}

impl Proxy {
    pub(crate) fn new(inner: ApiServerProxy) -> Self {
        Self { inner }
    }
}

/// A path in parts. A single part may be a whole path; of several parts, only the first may
/// contain slashes.
enum Path {
    Whole(String),
    Parts(Vec<String>),
}

impl Path {
    fn new(mut parts: Vec<String>) -> Self {
        match parts.len() {
            1 => Self::Whole(parts.remove(0)),
            _ => Self::Parts(parts),
        }
    }

    fn text(&self) -> Result<String, Error> {
        use longshore::client::ApiPath;
        match self {
            Self::Whole(path) => path.to_path(),
            Self::Parts(parts) => parts.to_path(),
        }
    }
}

fn pairs(params: &[(String, String)]) -> Vec<(&str, &str)> {
    let pairs = params.iter();
    pairs
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[pymethods]
impl Proxy {
    /// The URL of a path.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "PyO3 converts to owned values"
    )]
    fn urljoin(&self, path: Vec<String>) -> String {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        self.inner.urljoin(&parts)
    }

    /// Sends a request with an optional JSON body, and returns the JSON of the response.
    /// A `PATCH` has a kind.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "PyO3 converts to owned values"
    )]
    #[pyo3(signature = (method, path, params, body=None, kind=None))]
    fn request<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        path: Vec<String>,
        params: Vec<(String, String)>,
        body: Option<&Bound<'py, PyAny>>,
        kind: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let path = Path::new(path).text().map_err(raise(py))?;
        let query = pairs(&params);
        let json = || body.map_or(Ok(Value::Null), to_json);
        let proxy = &self.inner;
        let answer = match method {
            "GET" => wait(py, proxy.get(&path, &query))?,
            "POST" => {
                let body = json()?;
                wait(py, proxy.post(&path, &query, &body))?
            }
            "PUT" => {
                let body = json()?;
                wait(py, proxy.put(&path, &query, &body))?
            }
            "DELETE" => {
                let body = body.map(to_json).transpose()?;
                wait(py, proxy.delete(&path, &query, body.as_ref()))?
            }
            "PATCH" => {
                let patch = patch(kind.unwrap_or("strategic"), json()?)?;
                wait(py, proxy.patch(&path, &query, &patch))?
            }
            other => {
                let message = format!("there is no method {other:?}: use one of the proxy's");
                return Err(PyValueError::new_err(message));
            }
        };
        from_serde(py, &answer)
    }

    /// Watches a path; only events of objects with these values of fields are returned.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "PyO3 converts to owned values"
    )]
    #[pyo3(signature = (path, params, fields=None))]
    fn watch(
        &self,
        py: Python<'_>,
        path: Vec<String>,
        params: Vec<(String, String)>,
        fields: Option<Vec<(String, String)>>,
    ) -> PyResult<ProxyWatch> {
        let path = Path::new(path).text().map_err(raise(py))?;
        let query = pairs(&params);
        let mut watch = wait(py, self.inner.watch(&path, &query))?;
        if let Some(fields) = fields {
            let all = FieldSelector::everything();
            let fields = fields.iter();
            let selector = fields.fold(all, |all, (key, value)| all.with(key, value));
            watch = watch.matching(selector).map_err(raise(py))?;
        }
        Ok(ProxyWatch {
            inner: Mutex::new(watch),
            closed: watch::Sender::new(false),
        })
    }
}

/// The events of a path.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct ProxyWatch {
    inner: Mutex<Inner>,
    /// Whether it was closed; wakes a thread that waits for an event.
    closed: watch::Sender<bool>,
}

#[pymethods]
impl ProxyWatch {
    /// The next event, or `None` at the end. Raises `TimeoutError` if none occurs within the
    /// timeout.
    #[pyo3(signature = (timeout=None))]
    fn next<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let limit = limit(timeout)?;
        let next = wait(py, async {
            let mut closed = self.closed.subscribe();
            let next = async {
                let mut watch = self.inner.lock().await;
                match watch.next(limit).await {
                    Err(Error::Timeout { .. }) => Ok(None),
                    other => other.map(Some),
                }
            };
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => Ok(Some(None)),
                next = next => next,
            }
        })?;
        match next {
            Some(event) => from_serde(py, &event),
            None => Err(PyTimeoutError::new_err("no event came in time")),
        }
    }

    /// Ends the watch, also for threads that wait for an event.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.closed.send_replace(true);
        wait(py, async {
            self.inner.lock().await.close();
            Ok::<_, Error>(())
        })
    }
}
