//! One object, as it was at one version, and watches of objects.

mod watch;

use longshore::{Patch, client::DeleteOptions, kinds::Any};
use pyo3::{exceptions::PyValueError, prelude::*};
use serde_json::Value;

use crate::{
    errors::raise,
    value::{from_serde, to_json},
    wait::wait,
};

pub(crate) use watch::Watch;

/// An object as it was at one version.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Item {
    inner: longshore::Item<Any>,
}

impl Item {
    pub(crate) fn new(inner: longshore::Item<Any>) -> Self {
        Self { inner }
    }
}

/// A patch of the given kind: `strategic`, `merge`, `json` or `apply`.
pub(crate) fn patch(kind: &str, body: Value) -> PyResult<Patch> {
    Ok(match kind {
        "strategic" => Patch::strategic(body),
        "merge" => Patch::merge(body),
        "json" => Patch::json(body),
        "apply" => Patch::apply(body, "longshore", false),
        other => {
            return Err(PyValueError::new_err(format!(
                "there is no kind of patch {other:?}: choose strategic, merge, json or apply"
            )));
        }
    })
}

#[pymethods]
impl Item {
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    #[getter]
    fn namespace(&self) -> Option<&str> {
        self.inner.namespace()
    }

    #[getter]
    fn uid(&self) -> &str {
        self.inner.uid()
    }

    #[getter]
    fn version(&self) -> &str {
        self.inner.version()
    }

    #[getter]
    fn kind(&self) -> &str {
        &self.inner.kind().gvk.kind
    }

    #[getter]
    fn link(&self) -> String {
        self.inner.link()
    }

    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.inner.labels().to_map())
    }

    #[getter]
    fn annotations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.inner.annotations().to_map())
    }

    /// The whole object. Each call returns a new copy.
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.inner.raw().map_err(raise(py))?)
    }

    /// One field by its path, or `None` if the object lacks it. Parses only this field.
    #[pyo3(signature = (*path))]
    fn field<'py>(&self, py: Python<'py>, path: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let found = self.inner.field::<Value>(&path);
        from_serde(py, &found.map_err(raise(py))?)
    }

    /// The fields that are needed to create the object again.
    fn spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.inner.spec().map_err(raise(py))?)
    }

    fn fetch(&self, py: Python<'_>) -> PyResult<Self> {
        wait(py, self.inner.fetch()).map(Self::new)
    }

    #[pyo3(signature = (body, *, kind="strategic"))]
    fn patch(&self, py: Python<'_>, body: &Bound<'_, PyAny>, kind: &str) -> PyResult<Self> {
        let patch = patch(kind, to_json(body)?)?;
        wait(py, self.inner.patch(&patch)).map(Self::new)
    }

    #[pyo3(signature = (body, *, kind="strategic"))]
    fn patch_status(&self, py: Python<'_>, body: &Bound<'_, PyAny>, kind: &str) -> PyResult<Self> {
        let patch = patch(kind, to_json(body)?)?;
        wait(py, self.inner.patch_status(&patch)).map(Self::new)
    }

    fn delete(&self, py: Python<'_>) -> PyResult<()> {
        let options = DeleteOptions::default();
        wait(py, self.inner.delete(&options))
    }

    fn watch(&self, py: Python<'_>) -> PyResult<Watch> {
        wait(py, self.inner.watch()).map(Watch::new)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (self.inner.uid(), self.inner.version()).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<{} {}>", self.inner.kind().gvk.kind, self.inner.link())
    }
}
