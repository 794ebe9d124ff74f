//! Iterators over what arrives piece by piece: the items of a list, the lines of a log, the
//! changes of a cache.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream::BoxStream};
use longshore::{Error, client::LogLine, kinds::Any};
use pyo3::{
    exceptions::{PyStopAsyncIteration, PyTimeoutError},
    prelude::*,
};
use serde_json::Value;
use tokio::{
    sync::{Mutex, watch},
    time::timeout,
};

use crate::{
    errors::raise,
    face::{Face, Ready},
    objects::Item,
    value::from_serde,
    wait::{limit, wait},
};

/// One element.
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

type Next = Result<Piece, Error>;

/// The maximum number of pieces that one wait takes from the stream.
const AT_ONCE: usize = 1_000;

struct Shared {
    /// `None` after it was closed.
    stream: Mutex<Option<BoxStream<'static, Vec<Next>>>>,
    /// What has arrived.
    here: StdMutex<VecDeque<Next>>,
    /// Whether it was closed; wakes those who wait.
    closed: watch::Sender<bool>,
}

impl Shared {
    fn taken(&self) -> Option<Next> {
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        here.pop_front()
    }

    async fn next(&self) -> Option<Next> {
        let mut closed = self.closed.subscribe();
        let next = async {
            let mut stream = self.stream.lock().await;
            // Another task may have waited for the same pieces.
            if let Some(next) = self.taken() {
                return Some(next);
            }
            let pieces = stream.as_mut()?.next().await?;
            let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
            here.extend(pieces);
            here.pop_front()
        };
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => {}
            next = next => return next,
        }
        self.disconnect();
        None
    }

    /// Closes the connection, unless another task waits for a piece: it then does.
    fn disconnect(&self) {
        if let Ok(mut stream) = self.stream.try_lock() {
            *stream = None;
        }
    }
}

/// What a wait for a piece returned.
enum Outcome {
    Piece(Piece),
    End,
    Late,
}

async fn outcome(shared: Arc<Shared>, limit: Option<Duration>) -> Result<Outcome, Error> {
    let next = match limit {
        None => shared.next().await,
        Some(limit) => match timeout(limit, shared.next()).await {
            Ok(next) => next,
            Err(_) => return Ok(Outcome::Late),
        },
    };
    next.map_or(Ok(Outcome::End), |piece| piece.map(Outcome::Piece))
}

/// An iterator, or an asynchronous iterator.
#[pyclass(frozen, generic, module = "longshore")]
pub(crate) struct Stream {
    face: Face,
    shared: Arc<Shared>,
}

impl Stream {
    pub(crate) fn new(
        face: Face,
        pieces: impl futures::Stream<Item = Next> + Send + 'static,
    ) -> Self {
        let shared = Shared {
            stream: Mutex::new(Some(pieces.ready_chunks(AT_ONCE).boxed())),
            here: StdMutex::default(),
            closed: watch::Sender::new(false),
        };
        let shared = Arc::new(shared);
        Self { face, shared }
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
        if let Some(next) = self.shared.taken() {
            let piece = next.map_err(raise(py))?;
            return piece.into_python(py, self.face).map(Some);
        }
        match wait(py, outcome(self.shared.clone(), None))? {
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
        if let Some(next) = self.shared.taken() {
            let piece = next.map_err(raise(py))?;
            let value = piece.into_python(py, face)?;
            return Ready::new(value).into_awaitable(py);
        }
        let waiting = outcome(self.shared.clone(), None);
        face.run(py, waiting, move |py, outcome| match outcome {
            Outcome::Piece(piece) => piece.into_python(py, face),
            Outcome::End | Outcome::Late => Err(PyStopAsyncIteration::new_err(())),
        })
    }

    /// The next element, or `None` at the end. Raises `TimeoutError` if none arrives within
    /// the timeout.
    #[pyo3(signature = (timeout=None))]
    fn next<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let face = self.face;
        let waiting = outcome(self.shared.clone(), limit(timeout)?);
        face.run(py, waiting, move |py, outcome| match outcome {
            Outcome::Piece(piece) => piece.into_python(py, face),
            Outcome::End => Ok(py.None()),
            Outcome::Late => Err(PyTimeoutError::new_err("nothing arrived in time")),
        })
    }

    /// Ends the iteration, also for those who wait.
    fn close(&self) {
        self.shared.closed.send_replace(true);
        self.shared.disconnect();
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) {
        self.close();
    }
}
