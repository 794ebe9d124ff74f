//! ZenML's Kubernetes backend, and the runs that it launches.

use std::{collections::BTreeMap, path::PathBuf};

use longshore::{
    Cluster,
    launcher::Settings,
    zenml::{Launched, OrchestratorKubernetesBackend, PipelineConfig, ZenmlError},
};
use pyo3::prelude::*;

use crate::{
    errors::raise,
    face::Face,
    runs::{Allowed, Run},
    value::from_serde,
    wait::wait,
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
            caller: None,
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
            Ok::<_, ZenmlError>(started(cluster, launched))
        })
    }

    /// Packs and uploads the repository, and launches the pipeline.
    fn run(&self, py: Python<'_>, repository: PathBuf, config: &str) -> PyResult<Run> {
        let config = PipelineConfig::from_json(config).map_err(raise(py))?;
        wait(py, async {
            let cluster = self.inner.connect().await?;
            let launched = self.inner.run(&cluster, &repository, &config).await?;
            Ok::<_, ZenmlError>(started(cluster, launched))
        })
    }
}

/// The run of a launched pipeline.
fn started(cluster: Cluster, launched: Launched) -> Run {
    Run {
        cluster,
        face: Face::Blocking,
        run: launched.run,
        tar_path: launched.tar_path,
        packed: launched.packed,
        warnings: launched.warnings,
        kept: None,
        start_timeout: None,
        allowed: Allowed::Always,
    }
}
