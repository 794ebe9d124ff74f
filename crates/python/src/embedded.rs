//! The embedded cluster.

use std::path::PathBuf;

use longshore_embedded::{EmbeddedCluster as Inner, Error, Options};
use pyo3::prelude::*;
use tokio::sync::Mutex;

use crate::{cluster::Cluster, wait::wait};

/// A cluster in this process. Other programs connect to it with its kubeconfig.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct EmbeddedCluster {
    inner: Mutex<Option<Inner>>,
    /// The ID of the process that runs the cluster.
    owner: u32,
    cluster: Py<Cluster>,
    url: Option<String>,
    kubeconfig: Option<PathBuf>,
}

impl Drop for EmbeddedCluster {
    /// After a `fork`, the child has a copy of this value, but the cluster and its folder
    /// belong to the parent, so the child must not stop the cluster.
    fn drop(&mut self) {
        if std::process::id() != self.owner {
            std::mem::forget(self.inner.get_mut().take());
        }
    }
}

#[pymethods]
impl EmbeddedCluster {
    #[new]
    #[pyo3(signature = (*, pods=true, data_dir=None))]
    fn new(py: Python<'_>, pods: bool, data_dir: Option<PathBuf>) -> PyResult<Self> {
        let options = Options {
            ephemeral: data_dir.is_none(),
            data_dir,
            listen: Some(([127, 0, 0, 1], 0).into()),
            controllers: pods,
            node: pods,
            ..Options::default()
        };
        let started = wait(py, Inner::start(options))?;
        let cluster = Cluster::blocking(started.cluster());
        Ok(Self {
            cluster: Py::new(py, cluster)?,
            url: started.url().map(str::to_owned),
            kubeconfig: started.kubeconfig_path().map(PathBuf::from),
            inner: Mutex::new(Some(started)),
            owner: std::process::id(),
        })
    }

    /// An in-process connection to the cluster, without sockets.
    #[getter]
    fn cluster(&self, py: Python<'_>) -> Py<Cluster> {
        self.cluster.clone_ref(py)
    }

    #[getter]
    fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    #[getter]
    fn kubeconfig(&self) -> Option<PathBuf> {
        self.kubeconfig.clone()
    }

    /// Stops the pods and the cluster. Further calls do nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, async {
            if let Some(running) = self.inner.lock().await.take() {
                running.stop().await;
            }
            Ok::<_, Error>(())
        })
    }

    /// Shows the URL and the state, but not the token.
    fn __repr__(&self) -> String {
        let place = self.url.as_deref().unwrap_or("this process");
        let state = match self.inner.try_lock() {
            Ok(running) if running.is_some() => "",
            // Only `stop` holds the lock.
            _ => ", stopped",
        };
        format!("<EmbeddedCluster at {place}{state}>")
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.stop(py)
    }
}
