//! Makes exceptions of the classes of `longshore.errors`.

use std::borrow::Cow;

use pyo3::prelude::*;

/// The maximum length of an error message, in bytes. Messages quote arguments, which may
/// have any length.
const MAX_MESSAGE: usize = 8 * 1024;

pub(crate) fn bounded(message: &str) -> Cow<'_, str> {
    if message.len() <= MAX_MESSAGE {
        return Cow::Borrowed(message);
    }
    let end = message.floor_char_boundary(MAX_MESSAGE);
    let more = message.len() - end;
    Cow::Owned(format!("{}... ({more} more bytes)", &message[..end]))
}

/// The classes of errors of requests. Others have only a message.
pub(crate) const API_ERRORS: [&str; 6] = [
    "APIError",
    "AlreadyExistsError",
    "ConflictError",
    "ForbiddenError",
    "NotFoundError",
    "UnreachableError",
];

/// An exception of the class `class` of `longshore.errors`.
pub(crate) fn one(py: Python<'_>, class: &str, message: &str) -> PyResult<PyErr> {
    let found = py.import("longshore.errors")?.getattr(class)?;
    let error = match API_ERRORS.contains(&class) {
        // The server did not respond.
        true => found.call1((py.None(), bounded(message)))?,
        false => found.call1((bounded(message),))?,
    };
    Ok(PyErr::from_value(error))
}

/// An exception of a class of `longshore.errors`.
pub(crate) fn of_class(class: &str, message: impl AsRef<str>) -> PyErr {
    Python::attach(|py| match one(py, class, message.as_ref()) {
        Ok(error) | Err(error) => error,
    })
}

/// The exception for an invalid argument.
pub(crate) fn invalid(message: impl AsRef<str>) -> PyErr {
    of_class("InvalidError", message)
}

/// The exception for an expired timeout.
pub(crate) fn late(message: impl AsRef<str>) -> PyErr {
    of_class("WaitTimeoutError", message)
}
