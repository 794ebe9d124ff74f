//! Watches of objects.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex as StdMutex, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use longshore::{Error, WatchEvent, kinds::Any};
use pyo3::{
    exceptions::{PyStopAsyncIteration, PyTimeoutError},
    prelude::*,
    sync::PyOnceLock,
};
use tokio::sync::{Mutex, watch};

use crate::{
    errors::raise,
    face::{Face, Ready},
    objects::Item,
    wait::{limit, wait},
};

/// Changes to objects, in order, each exactly once.
#[pyclass(frozen, generic, module = "longshore")]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    face: Face,
}

struct Shared {
    inner: Mutex<longshore::Watch<Any>>,
    /// What has arrived.
    here: StdMutex<VecDeque<Next>>,
    /// Whether it was closed; wakes those who wait for a change.
    closed: watch::Sender<bool>,
}

type Next = Result<WatchEvent<Any>, Error>;

/// The maximum number of changes that one wait takes from the connection.
const AT_ONCE: usize = 1_000;

impl Shared {
    fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    fn taken(&self) -> Option<Next> {
        if self.is_closed() {
            return None;
        }
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        here.pop_front()
    }

    /// The next change, or `None` after the limit.
    async fn next(&self, limit: Option<Duration>) -> Result<Option<WatchEvent<Any>>, Error> {
        let mut closed = self.closed.subscribe();
        let next = async {
            let mut watch = self.inner.lock().await;
            // Another task may have waited for the same changes.
            if let Some(next) = self.taken() {
                return next.map(Some);
            }
            let first = match watch.next(limit).await {
                Err(Error::Timeout { .. }) => return Ok(None),
                first => first?,
            };
            let more = std::iter::from_fn(|| watch.next(None).now_or_never()).take(AT_ONCE);
            let mut ended = false;
            let more = more.take_while(|next| !std::mem::replace(&mut ended, next.is_err()));
            let more: Vec<Next> = more.collect();
            let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
            here.extend(more);
            Ok(Some(first))
        };
        let result = tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(Error::Closed),
            next = next => return next,
        };
        self.disconnect();
        result
    }

    /// Closes the connection, unless another task waits for a change: it then does.
    fn disconnect(&self) {
        if let Ok(mut watch) = self.inner.try_lock() {
            watch.close();
        }
    }
}

impl Watch {
    pub(crate) fn new(inner: longshore::Watch<Any>, face: Face) -> Self {
        let shared = Shared {
            inner: Mutex::new(inner),
            here: StdMutex::default(),
            closed: watch::Sender::new(false),
        };
        let shared = Arc::new(shared);
        Self { shared, face }
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
        if let Some(next) = self.shared.taken() {
            let event = next.map_err(raise(py))?;
            return to_python(py, Some(event), self.face).map(Some);
        }
        match wait(py, self.shared.next(None)) {
            // `close`, also in another thread, ends an iteration without an exception.
            Err(_) if self.shared.is_closed() => Ok(None),
            next => to_python(py, next?, self.face).map(Some),
        }
    }

    fn __aiter__(this: Py<Self>) -> PyResult<Py<Self>> {
        this.get().face.require(Face::Asyncio, "for")?;
        Ok(this)
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (face, shared) = (self.face, self.shared.clone());
        if let Some(next) = shared.taken() {
            let event = next.map_err(raise(py))?;
            return Ready::new(to_python(py, Some(event), face)?).into_awaitable(py);
        }
        let waiting = async move {
            match shared.next(None).await {
                Err(_) if shared.is_closed() => Ok(None),
                next => next.map(Some),
            }
        };
        face.run(py, waiting, move |py, next: Option<_>| match next {
            Some(event) => to_python(py, event, face),
            None => Err(PyStopAsyncIteration::new_err(())),
        })
    }

    /// The next change. Raises `TimeoutError` if none occurs within the timeout.
    #[pyo3(signature = (timeout=None))]
    fn next<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let (face, shared, limit) = (self.face, self.shared.clone(), limit(timeout)?);
        if let Some(next) = shared.taken() {
            let event = next.map_err(raise(py))?;
            let event = to_python(py, Some(event), face)?;
            return match face {
                Face::Blocking => Ok(event.into_bound(py)),
                Face::Asyncio => Ready::new(event).into_awaitable(py),
            };
        }
        let waiting = async move { shared.next(limit).await };
        face.run(py, waiting, move |py, next| to_python(py, next, face))
    }

    /// Ends the watch, also for those who wait for a change.
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

/// A `longshore.WatchEvent`.
fn to_python(py: Python<'_>, event: Option<WatchEvent<Any>>, face: Face) -> PyResult<Py<PyAny>> {
    let Some(event) = event else {
        return Err(PyTimeoutError::new_err("no change came in time"));
    };
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
