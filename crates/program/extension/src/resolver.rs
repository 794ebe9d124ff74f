//! Queries a cluster for tasks.

use std::collections::BTreeMap;

use longshore::{
    LabelSelector,
    resolver::{Error, Resolver as Inner},
};
use pyo3::{prelude::*, types::PyDict};
use tokio::sync::Mutex;

use crate::{
    cluster::Cluster,
    options::Options,
    selector::labels,
    tasks::Tasks,
    value::{from_serde, items},
    wait::{limit, wait},
};

/// Resolves label selectors over pods.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Resolver {
    inner: Inner,
}

/// The namespaces in which the resolver selects pods.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Scope {
    namespace: Option<String>,
    all_namespaces: bool,
}

#[pymethods]
impl Resolver {
    #[new]
    fn new(
        py: Python<'_>,
        cluster: &Cluster,
        mapping: &Bound<'_, PyAny>,
        scope: Scope,
        options: Options,
    ) -> PyResult<Self> {
        let cluster = cluster.ready(py)?;
        let namespace = scope
            .namespace
            .unwrap_or_else(|| cluster.default_namespace().to_owned());
        let mut roles = Vec::new();
        for pair in items(mapping)? {
            let (role, selectors): (String, Bound<'_, PyAny>) = pair.extract()?;
            let selectors = items(&selectors)?;
            let selectors = selectors.iter().map(|selector| labels(py, selector));
            roles.push((role, selectors.collect::<PyResult<Vec<LabelSelector>>>()?));
        }
        let inner = Inner::new(cluster)
            .with_mapping(roles)
            .with_namespace((!scope.all_namespaces).then_some(&*namespace))
            .with_assembly(options.assembly()?);
        Ok(Self { inner })
    }

    fn tasks(&self, py: Python<'_>) -> PyResult<Tasks> {
        wait(py, self.inner.tasks()).map(Tasks::new)
    }

    /// A sentence about each role without tasks.
    fn unmatched(&self, py: Python<'_>, tasks: &Tasks) -> PyResult<Vec<(String, String)>> {
        let unmatched = wait(py, self.inner.unmatched(tasks.inner()))?;
        let sentences = unmatched
            .iter()
            .map(|one| (one.role.clone(), one.to_string()));
        Ok(sentences.collect())
    }

    /// The role and index of the task in whose pod this process runs.
    fn own_task(&self, py: Python<'_>) -> PyResult<(String, u32)> {
        let task = wait(py, self.inner.own_task())?;
        Ok((task.role, task.index))
    }

    /// The accelerators of each task, and their models.
    fn accelerators<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_serde(py, &wait(py, self.inner.accelerators())?)
    }

    /// Waits until each role has the number of tasks that it needs.
    #[pyo3(signature = (needed, timeout=None))]
    fn wait(
        &self,
        py: Python<'_>,
        needed: BTreeMap<String, usize>,
        timeout: Option<f64>,
    ) -> PyResult<Tasks> {
        let limit = limit(timeout)?.unwrap_or(std::time::Duration::MAX);
        wait(py, self.inner.wait(&needed, limit)).map(Tasks::new)
    }

    fn watch(&self, py: Python<'_>) -> PyResult<Generations> {
        let inner = Mutex::new(wait(py, self.inner.watch())?);
        Ok(Generations { inner })
    }
}

/// The tasks after each change.
#[pyclass(frozen, module = "longshore")]
pub(crate) struct Generations {
    inner: Mutex<longshore::resolver::Generations>,
}

#[pymethods]
impl Generations {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.next(py, None)
    }

    /// The next generation, or `None` if none arrives within the timeout.
    #[pyo3(signature = (timeout=None))]
    fn next<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let limit = limit(timeout)?;
        let generation = wait(py, async {
            let mut inner = self.inner.lock().await;
            let next = inner.next();
            match limit {
                None => next.await.map(Some),
                Some(limit) => match tokio::time::timeout(limit, next).await {
                    Ok(generation) => generation.map(Some),
                    Err(_) => Ok::<_, Error>(None),
                },
            }
        })?;
        let Some(generation) = generation else {
            return Ok(None);
        };
        let fields = PyDict::new(py);
        fields.set_item("number", generation.number)?;
        fields.set_item("joined", from_serde(py, &generation.joined)?)?;
        fields.set_item("left", from_serde(py, &generation.left)?)?;
        fields.set_item("tasks", Tasks::new(generation.tasks))?;
        let class = py.import("longshore.events")?.getattr("Generation")?;
        class.call((), Some(&fields)).map(Some)
    }
}
