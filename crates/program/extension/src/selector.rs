//! Selectors of labels and fields.

use std::collections::BTreeMap;

use longshore::{Error, FieldSelector, LabelSelector, model::name};
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyMapping, PyString},
};

use crate::{
    errors::{invalid, raise, raised},
    value::{text, type_name},
};

/// A selector: a string, or a mapping of keys to required values.
enum Words {
    Text(String),
    Pairs(BTreeMap<String, String>),
}

impl Words {
    fn read(selector: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = selector.cast::<PyString>() {
            return self::text(text).map(Self::Text);
        }
        let Ok(mapping) = selector.cast::<PyMapping>() else {
            return Err(wrong_type(selector));
        };
        let mut pairs = BTreeMap::new();
        for pair in mapping.items()?.try_iter()? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let key = key.cast::<PyString>().map_err(|_| wrong_type(&key))?;
            let value = value.cast::<PyString>().map_err(|_| wrong_type(&value))?;
            pairs.insert(text(key)?, text(value)?);
        }
        Ok(Self::Pairs(pairs))
    }
}

fn wrong_type(found: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a selector is a text, as in 'app=web', or a mapping of texts to texts, not {}",
        type_name(found)
    ))
}

/// Rejects a selector that selects everything, because it is usually a mistake.
fn narrow<S: ToString>(selector: S) -> PyResult<S> {
    if selector.to_string().is_empty() {
        return Err(invalid(
            "an empty selector selects everything: leave it out",
        ));
    }
    Ok(selector)
}

/// Parses a label selector.
pub(crate) fn labels(py: Python<'_>, selector: &Bound<'_, PyAny>) -> PyResult<LabelSelector> {
    let made = match Words::read(selector)? {
        Words::Text(text) => text.parse::<LabelSelector>(),
        Words::Pairs(pairs) => LabelSelector::exactly(pairs),
    };
    narrow(made.map_err(Error::from).map_err(raise(py))?)
}

/// Parses a field selector.
pub(crate) fn fields(py: Python<'_>, selector: &Bound<'_, PyAny>) -> PyResult<FieldSelector> {
    let made = match Words::read(selector)? {
        Words::Text(text) => text.parse::<FieldSelector>(),
        Words::Pairs(pairs) => {
            let all = FieldSelector::everything();
            Ok(pairs
                .iter()
                .fold(all, |all, (key, value)| all.with(key, value)))
        }
    };
    narrow(made.map_err(Error::from).map_err(raise(py))?)
}

/// Checks the key of a label, and its value if there is one.
#[pyfunction]
#[pyo3(signature = (key, value=None))]
pub(crate) fn check_label(py: Python<'_>, key: &str, value: Option<&str>) -> PyResult<()> {
    name::label_key(key)
        .and_then(|()| value.map_or(Ok(()), name::label_value))
        .map_err(|error| raised(py, Error::from(error).into()))
}
