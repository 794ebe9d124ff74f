//! The two ways to wait for results: calls that block, and awaitables of asyncio. Both run
//! the same futures on the same threads.

use pyo3::{exceptions::PyStopIteration, prelude::*};

use crate::{
    awaitable::{Made, awaitable},
    errors::{Failure, raised},
    wait::wait,
};

/// The interface of an object's methods: blocking, or with awaitables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    Blocking,
    Asyncio,
}

impl Face {
    /// The face of objects for asyncio, or for blocking calls.
    pub(crate) fn of(asyncio: bool) -> Self {
        if asyncio {
            Self::Asyncio
        } else {
            Self::Blocking
        }
    }

    /// Returns the converted result of a future, or an awaitable with the result.
    pub(crate) fn run<'py, T, E>(
        self,
        py: Python<'py>,
        future: impl Future<Output = Result<T, E>> + Send + 'static,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        T: Send + 'static,
        E: Into<Failure> + Send + 'static,
    {
        if self == Self::Blocking {
            let result = wait(py, future)?;
            return Ok(convert(py, result)?.into_bound(py));
        }
        let work = Box::pin(async move {
            let made: Made = match future.await {
                Ok(result) => Box::new(move |py| convert(py, result)),
                Err(error) => {
                    let failure = error.into();
                    Box::new(move |py| Err(raised(py, failure)))
                }
            };
            made
        });
        awaitable(py, work)
    }

    /// Like [`Face::run`], for a future without a result.
    pub(crate) fn done<E: Into<Failure> + Send + 'static>(
        self,
        py: Python<'_>,
        future: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> PyResult<Bound<'_, PyAny>> {
        self.run(py, future, |py, ()| Ok(py.None()))
    }

    /// Rejects a call that only the other kind of object supports.
    pub(crate) fn require(self, needed: Self, instead: &str) -> PyResult<()> {
        if self == needed {
            return Ok(());
        }
        let found = match self {
            Self::Blocking => "longshore.Cluster",
            Self::Asyncio => "longshore.aio.Cluster",
        };
        let message = format!("this is an object of {found}: use {instead}");
        Err(pyo3::exceptions::PyTypeError::new_err(message))
    }
}

/// An awaitable whose value is there: nothing has to be scheduled for it.
#[pyclass(frozen)]
pub(crate) struct Ready {
    value: Py<PyAny>,
}

impl Ready {
    pub(crate) fn new(value: Py<PyAny>) -> Self {
        Self { value }
    }

    pub(crate) fn into_awaitable(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(self.into_pyobject(py)?.into_any())
    }
}

#[pymethods]
impl Ready {
    fn __await__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // A tuple, because a value would become the arguments of the exception.
        Err(PyStopIteration::new_err((self.value.clone_ref(py),)))
    }
}
