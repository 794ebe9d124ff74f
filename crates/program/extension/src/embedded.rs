//! The embedded cluster.

use std::{fmt::Display, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use jiff::Timestamp;
use longshore_embedded::{
    Clock, ClusterClock, EmbeddedCluster as Inner, Error, FaultRule, Layout, MAX_NODES, Options,
    SettleError,
};
use pyo3::{prelude::*, types::PyDict};
use tokio::sync::Mutex;

use crate::{
    cluster::Cluster,
    errors::{invalid, late, of_class},
    outputs::{self, TaskOutputs},
    program,
    value::{from_serde, rfc3339, to_json},
    wait::{duration, limit, wait},
};

/// A cluster in this process. Other programs connect to it with its kubeconfig.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct EmbeddedCluster {
    inner: Mutex<Option<Inner>>,
    /// The ID of the process that runs the cluster.
    owner: u32,
    cluster: Py<Cluster>,
    faults: longshore_embedded::Faults,
    clock: ClusterClock,
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
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    #[pyo3(signature = (
        *, pods=true, nodes=1, data_dir=None, snapshot=None, clock=None,
        image_entrypoints=None, image_users=None
    ))]
    fn new(
        py: Python<'_>,
        pods: bool,
        nodes: i64,
        data_dir: Option<PathBuf>,
        snapshot: Option<&Snapshot>,
        clock: Option<&Bound<'_, PyAny>>,
        image_entrypoints: Option<&Bound<'_, PyDict>>,
        image_users: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let number = u8::try_from(nodes).ok();
        let number = number.filter(|number| (1..=MAX_NODES).contains(number));
        let number = number.ok_or_else(|| {
            let text = format!("nodes is a number from 1 to {MAX_NODES}, not {nodes}");
            invalid(text)
        })?;
        if !pods && nodes != 1 {
            let text = "nodes has no effect without pods: omit pods=False";
            return Err(invalid(text));
        }
        let image_entrypoints = by_image(image_entrypoints)?;
        let image_users = by_image(image_users)?;
        let program = match pods {
            true => program::find(py)?,
            false => None,
        };
        let ephemeral = data_dir.is_none();
        let kept = TaskOutputs::default();
        if let Some(dir) = &data_dir {
            kept.set(outputs::of(&Layout::new(dir), ephemeral).outputs);
        }
        let options = Options {
            ephemeral,
            collect_files: Some(Arc::new(kept.clone())),
            data_dir,
            listen: Some(([127, 0, 0, 1], 0).into()),
            snapshot: snapshot.map(|snapshot| snapshot.0.clone()),
            clock: clock.map(manual_clock).transpose()?.unwrap_or_default(),
            controllers: pods,
            nodes: if pods { number } else { 0 },
            image_entrypoints,
            image_users,
            program_dir: program.and_then(|program| program.parent().map(PathBuf::from)),
            ..Options::default()
        };
        let started = wait(py, Inner::start(options))?;
        let local = outputs::of(started.layout(), ephemeral);
        kept.set(local.outputs.clone());
        if let Some(kubeconfig) = started.kubeconfig_path() {
            outputs::remember(kubeconfig, &local);
        }
        let cluster = Cluster {
            outputs: Some(local),
            code_folder: Some(started.layout().bundles()),
            data_folder: Some(started.layout().data()),
            ..Cluster::blocking(started.cluster())
        };
        Ok(Self {
            cluster: Py::new(py, cluster)?,
            faults: started.faults().clone(),
            clock: started.clock(),
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

    /// Faults of the server, for tests.
    #[getter]
    fn faults(&self) -> Faults {
        Faults {
            inner: self.faults.clone(),
        }
    }

    /// The URL of the server, a free port of 127.0.0.1.
    #[getter]
    fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// The path of the kubeconfig for other clients and programs.
    #[getter]
    fn kubeconfig(&self) -> Option<PathBuf> {
        self.kubeconfig.clone()
    }

    /// Takes a snapshot of all objects, in microseconds for any number of objects.
    ///
    /// ``EmbeddedCluster(snapshot=...)`` starts another cluster with these objects, and
    /// ``restore`` returns to them.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let taken = wait(py, async {
            let running = self.inner.lock().await;
            Ok::<_, Error>(running.as_ref().map(Inner::snapshot))
        })?;
        taken.map(Snapshot).ok_or_else(stopped)
    }

    /// Returns to a snapshot: all objects become those of the snapshot.
    ///
    /// Watches end with ``410 Expired``, so that clients list again; pods that are not in
    /// the snapshot end.
    fn restore(&self, py: Python<'_>, snapshot: &Snapshot) -> PyResult<()> {
        let restored = wait(py, async {
            match &*self.inner.lock().await {
                Some(running) => running.restore(&snapshot.0).await.map(Some),
                None => Ok(None),
            }
        })?;
        restored.ok_or_else(stopped)
    }

    /// The time of the cluster's clock, in UTC.
    #[getter]
    fn now<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        datetime(py, self.clock.now())
    }

    /// Advances a manual clock by some seconds, in one step. Returns the new time.
    ///
    /// Controllers and nodes then act on the new time, as on a change of an object: wait for
    /// what they do, or call ``settle``.
    fn advance<'py>(&self, py: Python<'py>, seconds: f64) -> PyResult<Bound<'py, PyAny>> {
        let step = duration("seconds", seconds)?;
        let clock = self.clock.clone();
        let advanced = wait(py, async move { Ok::<_, Error>(clock.advance(step).await) })?;
        let now = advanced.map_err(|error| invalid(error.to_string()))?;
        datetime(py, now)
    }

    /// Waits until the controllers of the cluster have nothing to do at the current time of a
    /// manual clock. Containers run by the system's clock and are not awaited.
    ///
    /// :raises WaitTimeoutError: If controllers still have work to do after the timeout.
    #[pyo3(signature = (timeout=30.0))]
    fn settle(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = limit(Some(timeout))?.unwrap_or(Duration::MAX);
        let clock = self.clock.clone();
        let settled = wait(
            py,
            async move { Ok::<_, Error>(clock.settle(timeout).await) },
        )?;
        settled.map_err(|error| match error {
            SettleError::Timeout { .. } => late(error.to_string()),
            error => invalid(error.to_string()),
        })
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

/// The setting of an image: a command, or a user as text or number.
#[derive(FromPyObject)]
enum Setting {
    Text(String),
    Number(u32),
}

/// The settings of images, each a text after the name of the image.
fn by_image<T: FromStr<Err: Display>>(given: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<T>> {
    let Some(given) = given else {
        return Ok(Vec::new());
    };
    let pairs: Vec<(String, Setting)> = given.items().extract()?;
    let parsed = pairs.iter().map(|(image, value)| {
        let parsed = match value {
            Setting::Text(text) => format!("{image}={text}").parse::<T>(),
            Setting::Number(number) => format!("{image}={number}").parse(),
        };
        parsed.map_err(|error| invalid(error.to_string()))
    });
    parsed.collect()
}

/// A manual clock that shows the time of a text or a `datetime`, or now for `manual`.
fn manual_clock(start: &Bound<'_, PyAny>) -> PyResult<Clock> {
    let text = match start.extract::<String>() {
        Ok(text) if text == "manual" => return Ok(Clock::manual(Timestamp::now())),
        Ok(text) => text,
        Err(_) => rfc3339(start)?,
    };
    let time = text.parse().map_err(|_| {
        invalid(format!(
            "clock: expected 'manual', a datetime or a time such as 2026-01-01T00:00:00Z, found {text:?}"
        ))
    })?;
    Ok(Clock::manual(time))
}

/// A `datetime` in UTC.
fn datetime<'py>(py: Python<'py>, time: Timestamp) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("datetime")?.getattr("datetime")?;
    // Python 3.10 does not read the Z.
    let text = format!("{time:.6}").replace('Z', "+00:00");
    class.call_method1("fromisoformat", (text,))
}

/// The objects of an embedded cluster at a point in time.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Snapshot(longshore_embedded::Snapshot);

#[pymethods]
impl Snapshot {
    /// The resource version at which it was taken.
    #[getter]
    fn resource_version(&self) -> String {
        self.0.revision().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Snapshot at {}>", self.0.revision())
    }
}

fn stopped() -> PyErr {
    of_class("ClosedError", "the embedded cluster has been stopped")
}

/// Faults that the server injects into selected requests.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Faults {
    inner: longshore_embedded::Faults,
}

#[pymethods]
impl Faults {
    /// Adds a rule, with the fields that docs/faults.md describes. Returns its ID.
    fn add(&self, rule: &Bound<'_, PyAny>) -> PyResult<String> {
        let rule = serde_json::from_value::<FaultRule>(to_json(rule)?);
        let rule = rule.map_err(|error| invalid(format!("a fault rule: {error}")))?;
        let added = self.inner.add(rule);
        added.map_err(|error| invalid(error.to_string()))
    }

    /// How many requests a rule has affected.
    fn fired(&self, id: &str) -> u64 {
        self.inner.fired(id)
    }

    /// The rules, with the counters `matched` and `fired`.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &self.inner.list())
    }

    /// Removes a rule. Returns whether it existed.
    fn remove(&self, id: &str) -> bool {
        self.inner.remove(id).is_some()
    }

    /// Removes all rules.
    fn clear(&self) {
        self.inner.clear();
    }

    /// Forgets old versions: clients in the middle of a list, or with an old watch, get 410.
    fn expire_history(&self, py: Python<'_>) -> PyResult<()> {
        let faults = self.inner.clone();
        wait(py, async move {
            faults.expire_history().await;
            Ok::<_, Error>(())
        })
    }
}
