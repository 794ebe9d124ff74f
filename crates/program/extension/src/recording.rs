//! Recorded requests, replayed in this process.

use std::path::PathBuf;

use longshore::recording::{Error, Replay as Inner, ReplayOptions, Report};
use pyo3::prelude::*;
use tokio::sync::Mutex;

use crate::{cluster::Cluster, errors::Failure, value::from_serde, wait::wait};

/// The server of a recording.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Replay {
    state: Mutex<State>,
    /// The ID of the process that runs the server.
    owner: u32,
    cluster: Py<Cluster>,
    url: String,
    kubeconfig: PathBuf,
}

/// A running server, or the report of a stopped one.
enum State {
    Running(Inner),
    Stopped(Report),
}

impl Drop for Replay {
    /// After a `fork`, the child has a copy of this value, but the kubeconfig belongs to the
    /// parent, so the child must not delete it.
    fn drop(&mut self) {
        if std::process::id() != self.owner {
            let state = std::mem::replace(self.state.get_mut(), State::Stopped(Report::default()));
            std::mem::forget(state);
        }
    }
}

impl Replay {
    fn report(&self, py: Python<'_>) -> PyResult<Report> {
        wait(py, async {
            Ok::<_, Failure>(match &*self.state.lock().await {
                State::Running(replay) => replay.report(),
                State::Stopped(report) => report.clone(),
            })
        })
    }
}

#[pymethods]
impl Replay {
    #[new]
    #[pyo3(signature = (path, *, strict=false, timing=false, ignore_bodies=false))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        strict: bool,
        timing: bool,
        ignore_bodies: bool,
    ) -> PyResult<Self> {
        let mut options = ReplayOptions::default();
        options.strict = strict;
        options.timing = timing;
        options.ignore_bodies = ignore_bodies;
        let (replay, cluster) = wait(py, async {
            let replay = Inner::open_with(path, options).await?;
            let cluster = replay.cluster().await?;
            Ok::<_, Error>((replay, cluster))
        })?;
        Ok(Self {
            owner: std::process::id(),
            cluster: Py::new(py, Cluster::blocking(cluster))?,
            url: replay.url().to_owned(),
            kubeconfig: replay.kubeconfig().to_owned(),
            state: Mutex::new(State::Running(replay)),
        })
    }

    /// A client, with the namespace of the recording.
    #[getter]
    fn cluster(&self, py: Python<'_>) -> Py<Cluster> {
        self.cluster.clone_ref(py)
    }

    /// The URL of the server, a free port of 127.0.0.1.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// The path of the kubeconfig for other clients and programs.
    #[getter]
    fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }

    /// How many requests were answered from the recording.
    #[getter]
    fn served(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.report(py)?.served)
    }

    /// The requests that were not recorded, each with ``request``, ``reason`` and ``count``.
    #[getter]
    fn not_recorded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.report(py)?.not_recorded)
    }

    /// The recorded requests that were not made.
    #[getter]
    fn unused(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.report(py)?.unused)
    }

    /// Stops the server. Further calls do nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, async {
            let mut state = self.state.lock().await;
            if let State::Running(replay) = &*state {
                *state = State::Stopped(replay.report());
            }
            Ok::<_, Failure>(())
        })
    }

    fn __repr__(&self) -> String {
        let state = match self.state.try_lock() {
            Ok(state) if matches!(*state, State::Stopped(_)) => ", stopped",
            _ => "",
        };
        // Omits the path, which other users must not know.
        let end = self.url.rfind('/').unwrap_or(self.url.len());
        format!(
            "<Replay at {}{state}>",
            self.url.get(..end).unwrap_or_default()
        )
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.stop(py)
    }
}
