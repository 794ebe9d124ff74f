//! Leader election.

use std::sync::{Mutex, PoisonError};

use longshore::{
    Cluster as Connection, Error,
    client::{ElectionOptions, Leadership as Inner},
};
use pyo3::prelude::*;

use crate::{
    face::{Face, Ready},
    wait::{duration, limit},
};

/// The leadership of this process.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Leadership {
    /// `None` after it was resigned.
    inner: Mutex<Option<Inner>>,
    identity: String,
    face: Face,
}

/// Times in seconds. `None` is the default of [`ElectionOptions`].
pub(crate) struct Times {
    pub(crate) lease_duration: Option<f64>,
    pub(crate) renew_deadline: Option<f64>,
    pub(crate) retry_interval: Option<f64>,
}

/// The host's name, which is a pod's name, and a random part.
pub(crate) fn unique_identity(py: Python<'_>) -> PyResult<String> {
    let host: String = py
        .import("socket")?
        .call_method0("gethostname")?
        .extract()?;
    let random = py.import("uuid")?.call_method0("uuid4")?.str()?;
    Ok(format!("{host}_{random}"))
}

/// Waits until this process leads.
pub(crate) fn lead<'py>(
    py: Python<'py>,
    (connection, face): (Connection, Face),
    name: String,
    namespace: Option<String>,
    identity: String,
    times: &Times,
) -> PyResult<Bound<'py, PyAny>> {
    let mut options = ElectionOptions::new(identity.clone());
    for (name, field, given) in [
        (
            "lease_duration",
            &mut options.lease_duration,
            times.lease_duration,
        ),
        (
            "renew_deadline",
            &mut options.renew_deadline,
            times.renew_deadline,
        ),
        (
            "retry_interval",
            &mut options.retry_interval,
            times.retry_interval,
        ),
    ] {
        if let Some(given) = given {
            *field = duration(name, given)?;
        }
    }
    let leading = async move {
        let namespace = namespace.unwrap_or_else(|| connection.default_namespace().to_owned());
        connection.lead(&namespace, &name, options).await
    };
    face.run(py, leading, move |py, inner| {
        let leadership = Leadership {
            inner: Mutex::new(Some(inner)),
            identity,
            face,
        };
        Ok(leadership.into_pyobject(py)?.into_any().unbind())
    })
}

impl Leadership {
    fn read<T>(&self, read: impl FnOnce(&Inner) -> T) -> Option<T> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.as_ref().map(read)
    }
}

#[pymethods]
impl Leadership {
    /// The name of this process among those that want to lead.
    #[getter]
    fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether this process leads.
    #[getter]
    fn is_leading(&self) -> bool {
        self.read(Inner::is_leading).unwrap_or(false)
    }

    /// Waits until this process no longer leads. Returns whether it has lost the leadership.
    ///
    /// :param timeout: Return after this number of seconds at the latest.
    #[pyo3(signature = (timeout=None))]
    fn lost<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let (lost, limit) = (self.read(Inner::lost), limit(timeout)?);
        let waiting = async move {
            Ok::<_, Error>(match (lost, limit) {
                (None, _) => true,
                (Some(lost), None) => {
                    lost.await;
                    true
                }
                (Some(lost), Some(limit)) => tokio::time::timeout(limit, lost).await.is_ok(),
            })
        };
        self.face.run(py, waiting, |py, lost| {
            Ok(lost.into_pyobject(py)?.to_owned().into_any().unbind())
        })
    }

    /// Releases the Lease, so that another process can lead at once.
    fn resign<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = inner.take();
        drop(inner);
        self.face.done(py, async move {
            match taken {
                Some(leadership) => leadership.resign().await,
                None => Ok(()),
            }
        })
    }

    fn __enter__(this: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        this.get().face.require(Face::Blocking, "`async with`")?;
        Ok(this)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.resign(py).map(drop)
    }

    fn __aenter__(this: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        this.get().face.require(Face::Asyncio, "`with`")?;
        let py = this.py();
        Ready::new(this.into_any().unbind()).into_awaitable(py)
    }

    #[pyo3(signature = (*_raised))]
    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        _raised: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.resign(py)
    }

    fn __repr__(&self) -> String {
        let state = if self.is_leading() {
            "leading"
        } else {
            "not leading"
        };
        format!("<Leadership of {:?}, {state}>", self.identity)
    }
}
