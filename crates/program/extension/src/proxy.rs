//! Requests by path, for resources that have no view.

use longshore::{Error, FieldSelector, Patch, client::ApiServerProxy};
use pyo3::prelude::*;
use serde_json::Value;

use crate::{
    errors::{invalid, raise},
    face::Face,
    item::patch,
    stream::{Piece, Stream},
    value::{from_serde, to_json},
};

/// Sends requests by path.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Proxy {
    inner: ApiServerProxy,
    face: Face,
}

impl Proxy {
    pub(crate) fn new(inner: ApiServerProxy, face: Face) -> Self {
        Self { inner, face }
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
        let body = body.map(to_json).transpose()?;
        let request = Request::new(method, body, kind)?;
        let proxy = self.inner.clone();
        let sending = async move {
            let query = pairs(&params);
            match request {
                Request::Get => proxy.get(&path, &query).await,
                Request::Post(body) => proxy.post(&path, &query, &body).await,
                Request::Put(body) => proxy.put(&path, &query, &body).await,
                Request::Patch(patch) => proxy.patch(&path, &query, &patch).await,
                Request::Delete(body) => proxy.delete(&path, &query, body.as_ref()).await,
            }
        };
        self.face.run(py, sending, |py, answer| {
            Ok(from_serde(py, &answer)?.unbind())
        })
    }

    /// Watches a path; only events of objects with these values of fields are returned.
    #[pyo3(signature = (path, params, fields=None))]
    fn watch<'py>(
        &self,
        py: Python<'py>,
        path: Vec<String>,
        params: Vec<(String, String)>,
        fields: Option<Vec<(String, String)>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let path = Path::new(path).text().map_err(raise(py))?;
        let (face, proxy) = (self.face, self.inner.clone());
        let opening = async move {
            let mut watch = proxy.watch(&path, &pairs(&params)).await?;
            if let Some(fields) = fields {
                let all = FieldSelector::everything();
                let fields = fields.iter();
                watch =
                    watch.matching(fields.fold(all, |all, (key, value)| all.with(key, value)))?;
            }
            let events = futures::stream::unfold(watch, |mut watch| async {
                let event = watch.next(None).await.transpose()?;
                Some((event.map(Piece::Json), watch))
            });
            Ok::<_, Error>(Stream::new(face, events))
        };
        face.run(py, opening, |py, stream| {
            Ok(stream.into_pyobject(py)?.into_any().unbind())
        })
    }
}

/// A method with its body.
enum Request {
    Get,
    Post(Value),
    Put(Value),
    Patch(Patch),
    Delete(Option<Value>),
}

impl Request {
    fn new(method: &str, body: Option<Value>, kind: Option<&str>) -> PyResult<Self> {
        Ok(match method {
            "GET" => Self::Get,
            "POST" => Self::Post(body.unwrap_or_default()),
            "PUT" => Self::Put(body.unwrap_or_default()),
            "PATCH" => {
                let kind = kind.unwrap_or("strategic");
                Self::Patch(patch(kind, body.unwrap_or_default())?)
            }
            "DELETE" => Self::Delete(body),
            other => {
                let message =
                    format!("there is no method {other:?}: use GET, POST, PUT, PATCH or DELETE");
                return Err(invalid(message));
            }
        })
    }
}
