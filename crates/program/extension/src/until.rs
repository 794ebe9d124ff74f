//! Conditions to wait for.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use longshore::{client::until, kinds::Any};
use pyo3::{exceptions::PyTypeError, prelude::*};

use crate::{awaitable::attached, face::Face, objects::Item, value::type_name};

type Found = longshore::Item<Any>;

/// A condition.
pub(crate) enum Until {
    Ready,
    Finished,
    Deleted,
    /// The name of a condition of the status.
    Condition(String),
    Function(Py<PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Until {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if value.is_callable() {
            return Ok(Self::Function(value.to_owned().unbind()));
        }
        let Ok(text) = value.extract::<String>() else {
            return Err(PyTypeError::new_err(format!(
                "what to wait for is 'ready', 'finished', 'deleted', the name of a condition such \
                 as 'Available', or a function, not {}",
                type_name(&value)
            )));
        };
        Ok(match text.as_str() {
            "ready" => Self::Ready,
            "finished" => Self::Finished,
            "deleted" => Self::Deleted,
            _ => Self::Condition(text),
        })
    }
}

/// A duration that is long enough for every wait.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

/// Waits until an object fulfils a condition. Returns the object, or `None` when it is
/// deleted.
pub(crate) fn wait_until<'py>(
    py: Python<'py>,
    face: Face,
    view: longshore::View<Any>,
    name: String,
    until: Until,
    limit: Option<Duration>,
) -> PyResult<Bound<'py, PyAny>> {
    let limit = limit.unwrap_or(FOR_EVER);
    // An exception of the user's function.
    let raised = Arc::new(Mutex::new(None));
    let mut test: Box<dyn FnMut(&Found) -> bool + Send> = match until {
        Until::Deleted => {
            return face.done(py, async move { view.wait_gone(&name, limit).await });
        }
        Until::Ready => Box::new(until::ready),
        Until::Finished => Box::new(until::finished),
        Until::Condition(kind) => Box::new(until::condition(&kind)),
        Until::Function(function) => {
            let raised = raised.clone();
            Box::new(move |item| {
                let called = attached(|py| {
                    let item = Item::new(item.clone(), face);
                    function.call1(py, (item,))?.is_truthy(py)
                });
                // At the exit of the interpreter, nothing waits any more.
                called.unwrap_or(Ok(false)).unwrap_or_else(|error| {
                    *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    true
                })
            })
        }
    };
    let waiting = async move { view.wait(&name, |item| test(item), limit).await };
    face.run(py, waiting, move |py, item| {
        let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        match raised {
            Some(error) => Err(error),
            None => Item::new(item, face).into_python(py),
        }
    })
}
