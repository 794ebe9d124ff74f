//! Watches of objects.

use longshore::{Error, WatchEvent, kinds::Any};
use pyo3::{exceptions::PyTimeoutError, prelude::*, types::PyDict};
use tokio::sync::{Mutex, watch};

use super::Item;
use crate::wait::{limit, wait};

/// Changes to objects, in order, each exactly once.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Watch {
    inner: Mutex<longshore::Watch<Any>>,
    /// Whether it was closed; wakes a thread that waits for a change.
    closed: watch::Sender<bool>,
}

impl Watch {
    pub(crate) fn new(inner: longshore::Watch<Any>) -> Self {
        Self {
            inner: Mutex::new(inner),
            closed: watch::Sender::new(false),
        }
    }

    fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }
}

#[pymethods]
impl Watch {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.next(py, None) {
            // `close`, also in another thread, ends an iteration without an exception.
            Err(_) if self.is_closed() => Ok(None),
            next => next.map(Some),
        }
    }

    /// The next change. Raises `TimeoutError` if none occurs within the timeout.
    #[pyo3(signature = (timeout=None))]
    fn next<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let limit = limit(timeout)?;
        let next = wait(py, async {
            let mut closed = self.closed.subscribe();
            let next = async {
                let mut watch = self.inner.lock().await;
                match watch.next(limit).await {
                    Err(Error::Timeout { .. }) => Ok(None),
                    other => other.map(Some),
                }
            };
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => Err(Error::Closed),
                next = next => next,
            }
        })?;
        match next {
            Some(event) => to_python(py, event),
            None => Err(PyTimeoutError::new_err("no change came in time")),
        }
    }

    /// Ends the watch, also for threads that wait for a change.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.closed.send_replace(true);
        wait(py, async {
            self.inner.lock().await.close();
            Ok::<_, Error>(())
        })
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }
}

/// A `longshore.WatchEvent`.
fn to_python(py: Python<'_>, event: WatchEvent<Any>) -> PyResult<Bound<'_, PyAny>> {
    let (kind, item, items) = match event {
        WatchEvent::Added(item) => ("ADDED", Some(item), None),
        WatchEvent::Modified(item) => ("MODIFIED", Some(item), None),
        WatchEvent::Deleted(item) => ("DELETED", Some(item), None),
        WatchEvent::Resync(list) => ("RESYNC", None, Some(list.items)),
    };
    let fields = PyDict::new(py);
    fields.set_item("evtype", kind)?;
    fields.set_item("item", item.map(Item::new))?;
    let items = items.map(|items| items.into_iter().map(Item::new).collect::<Vec<_>>());
    fields.set_item("items", items)?;
    let class = py.import("longshore.events")?.getattr("WatchEvent")?;
    class.call((), Some(&fields))
}
