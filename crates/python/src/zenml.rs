//! ZenML's Kubernetes backend, and the runs that it launches.

use std::{collections::BTreeMap, path::PathBuf};

use jiff::Timestamp;
use longshore::{
    Cluster,
    launcher::{
        Event, Follow, FollowOptions, Settings,
        runs::{self, Run as Inner},
    },
    zenml::{Launched, OrchestratorKubernetesBackend, PipelineConfig, ZenmlError},
};
use pyo3::{prelude::*, types::PyDict};
use tokio::sync::Mutex;

use crate::{
    errors::raise,
    value::from_serde,
    wait::{limit, wait},
};

/// The parameters of `OrchestratorKubernetesBackend`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Parameters {
    image: String,
    job_prefix: String,
    extra_labels: BTreeMap<String, String>,
    extra_annotations: BTreeMap<String, String>,
    namespace: Option<String>,
    image_pull_policy: String,
    kubernetes_config_path: PathBuf,
    settings: Option<PathBuf>,
}

/// Launches pipelines from configs in JSON.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct PipelineBackend {
    inner: OrchestratorKubernetesBackend,
}

#[pymethods]
impl PipelineBackend {
    #[new]
    fn new(py: Python<'_>, parameters: Parameters) -> PyResult<Self> {
        let policy = parameters.image_pull_policy.parse();
        let settings = parameters.settings.map(|path| {
            let loaded = Settings::load_file(&path, true);
            loaded.map_err(ZenmlError::from)
        });
        let settings = settings.transpose().map_err(raise(py))?;
        let inner = OrchestratorKubernetesBackend {
            image: parameters.image,
            job_prefix: parameters.job_prefix,
            extra_labels: parameters.extra_labels,
            extra_annotations: parameters.extra_annotations,
            namespace: parameters.namespace,
            image_pull_policy: policy.map_err(raise(py))?,
            kubernetes_config_path: parameters.kubernetes_config_path,
            settings: settings.unwrap_or_default(),
        };
        Ok(Self { inner })
    }

    /// The Job, as a dict.
    fn create_job_object<'py>(&self, py: Python<'py>, config: &str) -> PyResult<Bound<'py, PyAny>> {
        let config = PipelineConfig::from_json(config).map_err(raise(py))?;
        let job = self.inner.create_job_object(&config).map_err(raise(py))?;
        from_serde(py, &job)
    }

    fn launch_job(&self, py: Python<'_>, config: &str) -> PyResult<Run> {
        let config = PipelineConfig::from_json(config).map_err(raise(py))?;
        wait(py, async {
            let cluster = self.inner.connect().await?;
            let launched = self.inner.launch_job(&cluster, &config).await?;
            Ok::<_, ZenmlError>(Run { cluster, launched })
        })
    }

    /// Packs and uploads the repository, and launches the pipeline.
    fn run(&self, py: Python<'_>, repository: PathBuf, config: &str) -> PyResult<Run> {
        let config = PipelineConfig::from_json(config).map_err(raise(py))?;
        wait(py, async {
            let cluster = self.inner.connect().await?;
            let launched = self.inner.run(&cluster, &repository, &config).await?;
            Ok::<_, ZenmlError>(Run { cluster, launched })
        })
    }
}

/// A launched run.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Run {
    cluster: Cluster,
    launched: Launched,
}

impl Run {
    fn inner(&self) -> &Inner {
        &self.launched.run
    }
}

#[pymethods]
impl Run {
    #[getter]
    fn name(&self) -> &str {
        self.inner().name.as_str()
    }

    #[getter]
    fn namespace(&self) -> &str {
        &self.inner().namespace
    }

    /// The location of the uploaded code.
    #[getter]
    fn tar_path(&self) -> Option<&str> {
        self.launched.tar_path.as_deref()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.launched.warnings.clone()
    }

    /// What was packed and what was left out.
    #[getter]
    fn packed<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(report) = &self.launched.packed else {
            return Ok(None);
        };
        let packed = PyDict::new(py);
        packed.set_item("files", report.files)?;
        packed.set_item("bytes", report.bytes)?;
        packed.set_item("left_out", report.left_out)?;
        packed.set_item("left_out_examples", &report.left_out_examples)?;
        packed.set_item("largest", &report.largest)?;
        Ok(Some(packed))
    }

    /// Follows the run to its end.
    #[pyo3(signature = (*, logs=true))]
    fn follow(&self, py: Python<'_>, logs: bool) -> PyResult<Following> {
        let options = FollowOptions {
            logs,
            ..FollowOptions::default()
        };
        let started = wait(py, Follow::start(&self.cluster, self.inner(), options))?;
        Ok(Following {
            inner: Mutex::new(started),
        })
    }

    /// Stops the run and keeps its record.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let cancelled = runs::cancel(&self.cluster, self.inner(), Timestamp::now());
        wait(py, cancelled).map(drop)
    }
}

/// The events of a run.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Following {
    inner: Mutex<Follow>,
}

impl Following {
    fn event(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Event>> {
        let limit = limit(timeout)?;
        wait(py, async {
            let mut inner = self.inner.lock().await;
            let next = inner.next();
            match limit {
                None => next.await.transpose(),
                Some(limit) => match tokio::time::timeout(limit, next).await {
                    Ok(event) => event.transpose(),
                    Err(_) => Ok(None),
                },
            }
        })
    }
}

#[pymethods]
impl Following {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.next(py, None)
    }

    /// The next event. `None` after the last one, or if none occurs within the timeout.
    #[pyo3(signature = (timeout=None))]
    fn next<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let event = self.event(py, timeout)?;
        event.map(|event| from_serde(py, &event)).transpose()
    }
}
