//! Iterators over results that arrive piece by piece: the items of a list, the lines of a log, the
//! changes of a cache.

use std::sync::Arc;

use longshore::{Error, client::LogLine, kinds::Any};
use pyo3::{exceptions::PyStopAsyncIteration, prelude::*};
use serde_json::Value;

use crate::{
    errors::{late, raise},
    face::{Face, Ready},
    objects::Item,
    pieces::{Outcome, Pieces},
    value::from_serde,
    wait::{limit, wait},
};

/// An element of a stream.
pub(crate) enum Piece {
    Item(longshore::Item<Any>),
    Line(String),
    LineOf(LogLine),
    Change(&'static str, longshore::Item<Any>),
    Json(Value),
}

impl Piece {
    fn into_python(self, py: Python<'_>, face: Face) -> PyResult<Py<PyAny>> {
        let made = match self {
            Self::Item(item) => Item::new(item, face).into_pyobject(py)?.into_any(),
            Self::Line(line) => line.into_pyobject(py)?.into_any(),
            Self::LineOf(line) => (line.container, line.line).into_pyobject(py)?.into_any(),
            Self::Change(kind, item) => (kind, Item::new(item, face)).into_pyobject(py)?.into_any(),
            Self::Json(value) => from_serde(py, &value)?,
        };
        Ok(made.unbind())
    }
}

/// An iterator, or an asynchronous iterator.
#[pyclass(frozen, generic, module = "longshore")]
pub(crate) struct Stream {
    face: Face,
    pieces: Arc<Pieces<Piece>>,
}

impl Stream {
    pub(crate) fn new(
        face: Face,
        pieces: impl futures::Stream<Item = Result<Piece, Error>> + Send + 'static,
    ) -> Self {
        let pieces = Arc::new(Pieces::new(pieces));
        Self { face, pieces }
    }
}

#[pymethods]
impl Stream {
    fn __iter__(this: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        this.get().face.require(Face::Blocking, "async for")?;
        let _ = py;
        Ok(this)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if let Some(next) = self.pieces.taken() {
            let piece = next.map_err(raise(py))?;
            return piece.into_python(py, self.face).map(Some);
        }
        match wait(py, self.pieces.outcome(None))? {
            Outcome::Piece(piece) => piece.into_python(py, self.face).map(Some),
            Outcome::End | Outcome::Late => Ok(None),
        }
    }

    fn __aiter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().face.require(Face::Asyncio, "for")?;
        Ok(this)
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let face = self.face;
        if let Some(next) = self.pieces.taken() {
            let piece = next.map_err(raise(py))?;
            let value = piece.into_python(py, face)?;
            return Ready::new(value).into_awaitable(py);
        }
        let pieces = self.pieces.clone();
        let waiting = async move { pieces.outcome(None).await };
        face.run(py, waiting, move |py, outcome| match outcome {
            Outcome::Piece(piece) => piece.into_python(py, face),
            Outcome::End | Outcome::Late => Err(PyStopAsyncIteration::new_err(())),
        })
    }

    /// The next element, or `None` at the end. Raises `WaitTimeoutError` if none arrives within
    /// the timeout.
    #[pyo3(signature = (timeout=None))]
    fn next<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let (face, pieces, limit) = (self.face, self.pieces.clone(), limit(timeout)?);
        let waiting = async move { pieces.outcome(limit).await };
        face.run(py, waiting, move |py, outcome| match outcome {
            Outcome::Piece(piece) => piece.into_python(py, face),
            Outcome::End => Ok(py.None()),
            Outcome::Late => Err(late("nothing arrived in time")),
        })
    }

    /// Ends the iteration, also for those who wait.
    fn close(&self) {
        self.pieces.close();
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) {
        self.close();
    }
}
