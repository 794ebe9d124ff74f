//! The Python classes of objects and views. Their methods are in the modules `item` and `view`,
//! which use modules that return objects.

use longshore::kinds::Any;
use pyo3::prelude::*;

use crate::face::Face;

/// An object as it was at one version.
#[pyclass(frozen, generic, module = "longshore")]
pub(crate) struct Item {
    pub(crate) inner: longshore::Item<Any>,
    pub(crate) face: Face,
}

impl Item {
    pub(crate) fn new(inner: longshore::Item<Any>, face: Face) -> Self {
        Self { inner, face }
    }

    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.into_pyobject(py)?.into_any().unbind())
    }
}

/// The objects of one kind, in one namespace or in all.
#[pyclass(frozen, generic, module = "longshore")]
pub(crate) struct View {
    pub(crate) inner: longshore::View<Any>,
    pub(crate) face: Face,
}

impl View {
    pub(crate) fn new(inner: longshore::View<Any>, face: Face) -> Self {
        Self { inner, face }
    }
}
