//! Conversion between Python values and JSON.
//!
//! Values come from user code: they may contain themselves, be nested deeper than the
//! stack allows, or run code that raises. Exceptions of that code propagate unchanged.

use longshore::model::Quantity;
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{
        PyBool, PyDict, PyFloat, PyInt, PyIterator, PyList, PyMapping, PySequence, PyString,
        PyTuple,
    },
};
use serde_json::{Map, Number, Value};

use crate::exceptions::invalid;

/// The maximum nesting depth of mappings and lists. It is greater than the limit of API
/// servers, so that users see the server's error.
const MAX_DEPTH: usize = 200;

/// Converts a Python value to JSON: mappings, sequences, strings, numbers, booleans, `None`.
///
/// # Errors
/// `TypeError` for any other type; `ValueError` for a number or a string that JSON cannot
/// represent, and for a value that is nested too deeply or contains itself.
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    convert(value, MAX_DEPTH)
}

/// The text of a `datetime`. A time without a time zone is local, as in Python.
///
/// # Errors
/// `TypeError` for another value.
pub(crate) fn rfc3339(time: &Bound<'_, PyAny>) -> PyResult<String> {
    if !time.hasattr("astimezone")? {
        let found = type_name(time);
        return Err(PyTypeError::new_err(format!(
            "expected a datetime or a text, found {found}"
        )));
    }
    time.call_method0("astimezone")?
        .call_method0("isoformat")?
        .extract()
}

fn convert(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return self::text(text).map(Value::String);
    }
    // Before integers, because Python's booleans are integers.
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if let Ok(number) = value.cast::<PyInt>() {
        return integer(number);
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = number.value();
        let number = Number::from_f64(number)
            .ok_or_else(|| invalid(format!("JSON has no number {number}: only finite ones")))?;
        return Ok(Value::Number(number));
    }
    let deeper = || {
        depth.checked_sub(1).ok_or_else(|| {
            invalid(format!(
                "the value is nested more than {MAX_DEPTH} levels deep, or contains itself"
            ))
        })
    };
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        let depth = deeper()?;
        let pairs = dict.items();
        return object(pairs.try_iter()?, depth);
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        let depth = deeper()?;
        return object(mapping.items()?.try_iter()?, depth);
    }
    if value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.cast::<PySequence>().is_ok() && !is_bytes(value)
    {
        let depth = deeper()?;
        let items = value.try_iter()?;
        let items = items.map(|item| convert(&item?, depth));
        return items.collect::<PyResult<Vec<_>>>().map(Value::Array);
    }
    Err(PyTypeError::new_err(format!(
        "only what JSON has can be sent: mappings, lists, texts, numbers, True, False, None; not {}",
        type_name(value)
    )))
}

fn object(pairs: Bound<'_, PyIterator>, depth: usize) -> PyResult<Value> {
    let mut fields = Map::new();
    for pair in pairs {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
        let Ok(key) = key.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!(
                "only what JSON has can be sent: a key must be a text, not {}",
                type_name(&key)
            )));
        };
        fields.insert(text(key)?, convert(&value, depth)?);
    }
    Ok(Value::Object(fields))
}

fn integer(number: &Bound<'_, PyInt>) -> PyResult<Value> {
    if let Ok(number) = number.extract::<i64>() {
        return Ok(number.into());
    }
    if let Ok(number) = number.extract::<u64>() {
        return Ok(number.into());
    }
    Err(invalid(
        "an integer does not fit into 64 bits, which is what API servers read",
    ))
}

/// Converts a string. Strings with lone surrogates are not valid Unicode.
pub(crate) fn text(text: &Bound<'_, PyString>) -> PyResult<String> {
    match text.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(invalid(
            "a text has lone surrogates, which are no characters and cannot be sent",
        )),
    }
}

/// In Python, bytes are sequences of numbers, but users rarely mean a list of numbers.
fn is_bytes(value: &Bound<'_, PyAny>) -> bool {
    use pyo3::types::{PyByteArray, PyBytes};
    value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || type_name(value) == "memoryview"
}

/// The name of a value's type. It runs no code of the value, so it cannot fail.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    let name = value.get_type().name();
    name.map_or_else(
        |_| "a value".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Converts any value that serde can serialize to Python values.
pub(crate) fn from_serde<'py>(
    py: Python<'py>,
    value: &impl serde::Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize::pythonize(py, value)?)
}

/// The items of a sequence. It does not allocate by the sequence's length, which may be
/// wrong and exceed the available memory.
pub(crate) fn items<'py>(sequence: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    sequence.try_iter()?.collect()
}

/// Parses a quantity, such as `500m` or `1Gi`.
#[pyfunction]
pub(crate) fn quantity(text: &str) -> PyResult<f64> {
    let quantity = text.parse::<Quantity>();
    let quantity = quantity.map_err(|error| invalid(error.to_string()))?;
    Ok(quantity.value())
}

/// The error for pickling an object that belongs to a connection.
pub(crate) fn no_pickle(class: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a {class} belongs to the connection of this process and cannot be pickled: send its \
         `raw`, or the arguments to connect again"
    ))
}
