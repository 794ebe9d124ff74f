//! Watches of objects.

use std::sync::Arc;

use longshore::{Error, WatchEvent, kinds::Any};
use pyo3::{exceptions::PyStopAsyncIteration, prelude::*, sync::PyOnceLock};

use crate::{
    errors::{late, raise},
    face::{Face, Ready},
    objects::Item,
    pieces::{Outcome, Pieces},
    wait::{limit, wait},
};

/// Changes to objects, in order, each exactly once.
#[pyclass(frozen, generic, module = "longshore")]
pub(crate) struct Watch {
    events: Arc<Pieces<WatchEvent<Any>>>,
    face: Face,
}

impl Watch {
    /// Must be called in the runtime.
    pub(crate) fn new(watch: longshore::Watch<Any>, face: Face) -> Self {
        let events = Arc::new(Pieces::ahead(watch, size));
        Self { events, face }
    }

    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.into_pyobject(py)?.into_any().unbind())
    }
}

#[pymethods]
impl Watch {
    fn __iter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().face.require(Face::Blocking, "async for")?;
        Ok(this)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if let Some(next) = self.events.taken() {
            return to_python(py, next.map_err(raise(py))?, self.face).map(Some);
        }
        match wait(py, self.events.outcome(None))? {
            Outcome::Piece(event) => to_python(py, event, self.face).map(Some),
            // `close`, also in another thread, ends an iteration without an exception.
            Outcome::End | Outcome::Late => Ok(None),
        }
    }

    fn __aiter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().face.require(Face::Asyncio, "for")?;
        Ok(this)
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (face, events) = (self.face, self.events.clone());
        if let Some(next) = events.taken() {
            let event = next.map_err(raise(py))?;
            return Ready::new(to_python(py, event, face)?).into_awaitable(py);
        }
        let waiting = async move { events.outcome(None).await };
        face.run(py, waiting, move |py, outcome| match outcome {
            Outcome::Piece(event) => to_python(py, event, face),
            Outcome::End | Outcome::Late => Err(PyStopAsyncIteration::new_err(())),
        })
    }

    /// The next change. Raises `WaitTimeoutError` if none occurs within the timeout.
    #[pyo3(signature = (timeout=None))]
    fn next<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let (face, events, limit) = (self.face, self.events.clone(), limit(timeout)?);
        if let Some(next) = events.taken() {
            let event = to_python(py, next.map_err(raise(py))?, face)?;
            return match face {
                Face::Blocking => Ok(event.into_bound(py)),
                Face::Asyncio => Ready::new(event).into_awaitable(py),
            };
        }
        let waiting = async move {
            match events.outcome(limit).await? {
                Outcome::Piece(event) => Ok(Some(event)),
                Outcome::End => Err(Error::Closed),
                Outcome::Late => Ok(None),
            }
        };
        face.run(py, waiting, move |py, event| match event {
            Some(event) => to_python(py, event, face),
            None => Err(late("no change came in time")),
        })
    }

    /// Ends the watch, also for those who wait for a change.
    fn close(&self) {
        self.events.close();
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyAny>) {
        self.close();
    }
}

/// The bytes of the objects of an event.
fn size(event: &WatchEvent<Any>) -> usize {
    let list = match event {
        WatchEvent::Resync(list) => &list.items[..],
        _ => &[],
    };
    let items = event.item().into_iter().chain(list);
    items.fold(0, |sum, item| sum.saturating_add(item.bytes().len()))
}

/// A `longshore.WatchEvent`.
fn to_python(py: Python<'_>, event: WatchEvent<Any>, face: Face) -> PyResult<Py<PyAny>> {
    let (kind, item, items) = match event {
        WatchEvent::Added(item) => ("ADDED", Some(item), None),
        WatchEvent::Modified(item) => ("MODIFIED", Some(item), None),
        WatchEvent::Deleted(item) => ("DELETED", Some(item), None),
        WatchEvent::Resync(list) => ("RESYNC", None, Some(list.items)),
    };
    let item = item.map(|item| Item::new(item, face));
    let items = items.map(|items| {
        let items = items.into_iter().map(|item| Item::new(item, face));
        items.collect::<Vec<_>>()
    });
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let class = py.import("longshore.events")?.getattr("WatchEvent")?;
        Ok::<_, PyErr>(class.unbind())
    })?;
    class.call1(py, (kind, item, items))
}
