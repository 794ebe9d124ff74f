//! Tasks, and the formats in which frameworks read them.

use longshore::resolver::{
    PodFacts, Selected, Tasks as Inner, assemble as pure,
    render::{Format, Job},
};
use pyo3::prelude::*;
use serde_json::Value;

use crate::{
    errors::{raise, render},
    options::Options,
    spec::ClusterSpec,
    value::{from_serde, items},
};

/// The tasks of a job at one point in time.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Tasks {
    inner: Inner,
}

impl Tasks {
    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

/// Parses the name of a format.
fn format(py: Python<'_>, name: &str) -> PyResult<Format> {
    name.parse().map_err(|error| render(py, error))
}

#[pymethods]
impl Tasks {
    /// The addresses of the tasks.
    fn spec(&self) -> ClusterSpec {
        let inner = self.inner.spec();
        ClusterSpec { inner }
    }

    /// The accelerators of one task, or those that all tasks of a role have.
    #[pyo3(signature = (task_type=None, task_id=None))]
    fn num_accelerators<'py>(
        &self,
        py: Python<'py>,
        task_type: Option<&str>,
        task_id: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = self.inner.num_accelerators(task_type, task_id);
        from_serde(py, &found.map_err(raise(py))?)
    }

    /// The URL of a task.
    fn master(
        &self,
        py: Python<'_>,
        task_type: Option<&str>,
        task_id: Option<u32>,
        rpc_layer: &str,
    ) -> PyResult<String> {
        let url = self.inner.master(task_type, task_id, rpc_layer);
        url.map_err(raise(py))
    }

    /// The tasks in one of the formats of `longshore resolve`.
    #[pyo3(signature = (format, task_type=None, task_id=None))]
    fn render(
        &self,
        py: Python<'_>,
        format: &str,
        task_type: Option<&str>,
        task_id: Option<u32>,
    ) -> PyResult<String> {
        let format = self::format(py, format)?;
        let job = Job::from(&self.inner);
        let text = job.render(format, task_type.zip(task_id));
        text.map_err(|error| render(py, error))
    }

    /// The environment variables of one task for all frameworks.
    fn variables<'py>(
        &self,
        py: Python<'py>,
        task_type: &str,
        task_id: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let job = Job::from(&self.inner);
        let variables = job.variables(task_type, task_id);
        let variables = variables.map_err(|error| render(py, error))?;
        let pairs = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Value::from(value)));
        from_serde(py, &pairs.collect::<Value>())
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// One dict per task: role, index, address, pod, accelerators.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tasks: Vec<_> = self.inner.iter().collect();
        Ok(from_serde(py, &tasks)?.try_iter()?.into_any())
    }
}

/// Assembles tasks from pods that another client has listed. `selected` has, for each
/// role, the pods of each selector, as JSON.
#[pyfunction]
pub(crate) fn assemble(
    py: Python<'_>,
    selected: &Bound<'_, PyAny>,
    options: Options,
) -> PyResult<Tasks> {
    let how = options.assembly()?;
    let mut roles = Vec::new();
    for selected in items(selected)? {
        let (role, groups): (String, Bound<'_, PyAny>) = selected.extract()?;
        let mut all: Vec<Vec<PodFacts>> = Vec::new();
        for pods in items(&groups)? {
            let pods = items(&pods)?;
            all.push(pods.iter().map(facts).collect::<PyResult<_>>()?);
        }
        roles.push((role, all));
    }
    let selected: Vec<Selected<'_>> = roles
        .iter()
        .map(|(role, groups)| Selected {
            role,
            pods: groups.iter().map(|pods| pods.iter().collect()).collect(),
        })
        .collect();
    pure(&selected, &how).map(Tasks::new).map_err(raise(py))
}

fn facts(pod: &Bound<'_, PyAny>) -> PyResult<PodFacts> {
    pythonize::depythonize(pod).map_err(|error| {
        pyo3::exceptions::PyTypeError::new_err(format!(
            "a pod of the client cannot be read: {error}"
        ))
    })
}
