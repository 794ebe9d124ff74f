//! Python's values and JSON's.

use pyo3::{exceptions::PyTypeError, prelude::*};
use serde_json::Value;

/// A Python value as JSON: mappings, sequences, texts, numbers, truth, `None`.
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    pythonize::depythonize(value).map_err(|error| {
        PyTypeError::new_err(format!(
            "only what JSON has can be sent: mappings, lists, texts, numbers, True, False, None: {error}"
        ))
    })
}

/// Anything that serde writes, as Python's own values.
pub(crate) fn from_serde<'py>(
    py: Python<'py>,
    value: &impl serde::Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize::pythonize(py, value)?)
}
