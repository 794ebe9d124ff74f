//! `ClusterSpec`, with the interface of TensorFlow's class.

use longshore::resolver::ClusterSpec as Inner;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyList, PyMapping, PyString},
};
use serde_json::{Map, Value};

use crate::{
    errors::raise,
    value::{from_serde, text, to_json, type_name},
};

/// The tasks of a job and their addresses. It has the methods of `tf.train.ClusterSpec`.
#[pyclass(frozen, module = "longshore", eq, skip_from_py_object)]
#[derive(PartialEq)]
pub(crate) struct ClusterSpec {
    pub(crate) inner: Inner,
}

/// Converts a mapping of job names to tasks to JSON. Tasks are strings, mappings or
/// sequences. Keys are converted unchanged, so that the error names an invalid index.
fn jobs(cluster: &Bound<'_, PyAny>) -> PyResult<Value> {
    let Ok(mapping) = cluster.cast::<PyMapping>() else {
        return shown(cluster);
    };
    let mut jobs = Map::new();
    for pair in mapping.items()?.iter() {
        let (job, tasks): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        let Ok(job) = job.cast::<PyString>() else {
            let found = match shown(&job)? {
                Value::Null => format!("not {}", type_name(&job)),
                found => format!("but is {found}"),
            };
            let message = format!("the name of a job must be a string, {found}");
            return Err(PyTypeError::new_err(message));
        };
        jobs.insert(text(job)?, members(&tasks)?);
    }
    Ok(Value::Object(jobs))
}

/// The tasks of a job.
fn members(tasks: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(mapping) = tasks.cast::<PyMapping>() {
        let mut members = Map::new();
        for pair in mapping.items()?.iter() {
            let (index, address): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
            // Without this check, "1" and 1 would be the same index.
            let index = match index.extract::<i64>() {
                Ok(number) => number.to_string(),
                Err(_) => index.repr()?.to_string(),
            };
            members.insert(index, shown(&address)?);
        }
        return Ok(Value::Object(members));
    }
    if tasks.is_instance_of::<PyString>() {
        return shown(tasks);
    }
    let Ok(sequence) = tasks.try_iter() else {
        return shown(tasks);
    };
    let members = sequence.map(|address| shown(&address?));
    members.collect::<PyResult<Vec<_>>>().map(Value::Array)
}

/// Converts a value to JSON for the error message. Values without a JSON form are null.
fn shown(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(text) = value.cast::<PyString>() {
        return self::text(text).map(Value::String);
    }
    let py = value.py();
    match to_json(value) {
        Ok(other) => Ok(other),
        // JSON cannot represent the value.
        Err(error)
            if error.is_instance_of::<PyTypeError>(py)
                || error.is_instance_of::<PyValueError>(py) =>
        {
            Ok(Value::Null)
        }
        Err(error) => Err(error),
    }
}

#[pymethods]
impl ClusterSpec {
    #[new]
    fn new(py: Python<'_>, cluster: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(same) = cluster.cast::<Self>() {
            let inner = same.get().inner.clone();
            return Ok(Self { inner });
        }
        // TensorFlow's class, and any other class with the same method.
        let cluster = match cluster.getattr_opt("as_dict")? {
            Some(as_dict) => as_dict.call0()?,
            None => cluster.clone(),
        };
        let inner = Inner::from_value(&jobs(&cluster)?).map_err(raise(py))?;
        Ok(Self { inner })
    }

    /// Dense jobs are lists; sparse jobs are dicts that map indices to addresses. A job without
    /// tasks is an empty dict, as in TensorFlow.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for job in self.inner.jobs() {
            let tasks: Vec<_> = self.inner.tasks(job).collect();
            let dense = (0..).zip(&tasks).all(|(place, (index, _))| place == *index);
            if dense && !tasks.is_empty() {
                let addresses = tasks.iter().map(|(_, address)| *address);
                dict.set_item(job, PyList::new(py, addresses.collect::<Vec<_>>())?)?;
            } else {
                let sparse = PyDict::new(py);
                for (index, address) in tasks {
                    sparse.set_item(index, address)?;
                }
                dict.set_item(job, sparse)?;
            }
        }
        Ok(dict)
    }

    /// The names of the jobs, sorted.
    #[getter]
    fn jobs(&self) -> Vec<&str> {
        self.inner.jobs().collect()
    }

    /// The number of tasks of a job.
    fn num_tasks(&self, py: Python<'_>, job_name: &str) -> PyResult<usize> {
        self.inner.num_tasks(job_name).map_err(raise(py))
    }

    /// The indices of the tasks of a job, in order.
    fn task_indices(&self, py: Python<'_>, job_name: &str) -> PyResult<Vec<u32>> {
        self.inner.task_indices(job_name).map_err(raise(py))
    }

    /// The address of a task.
    fn task_address(
        &self,
        py: Python<'_>,
        job_name: &str,
        task_index: &Bound<'_, PyAny>,
    ) -> PyResult<String> {
        let index = index(py, &self.inner, job_name, task_index)?;
        let address = self.inner.task_address(job_name, index);
        address.map(str::to_owned).map_err(raise(py))
    }

    /// The addresses by index, with `None` for indices without a task.
    fn job_tasks(&self, py: Python<'_>, job_name: &str) -> PyResult<Vec<Option<String>>> {
        /// A larger index is a mistake: the list would consist of `None` values.
        const LONGEST: u32 = 10_000_000;
        let indices = self.inner.task_indices(job_name).map_err(raise(py))?;
        if let Some(last) = indices.last().filter(|last| **last > LONGEST) {
            return Err(PyValueError::new_err(format!(
                "job '{job_name}' has a task {last}: a list of that length would be holes; \
                 use task_indices and task_address"
            )));
        }
        let tasks = self.inner.job_tasks(job_name).map_err(raise(py))?;
        Ok(tasks.map(|address| address.map(str::to_owned)).collect())
    }

    /// TensorFlow's `ClusterDef` if TensorFlow is installed, and otherwise a dict with the
    /// same fields.
    fn as_cluster_def<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = py
            .import("longshore.cluster_resolver")?
            .getattr("cluster_def")?;
        made.call1((
            self.as_dict(py)?,
            from_serde(py, &self.inner.as_cluster_def())?,
        ))
    }

    fn __bool__(&self) -> bool {
        !self.inner.is_empty()
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.inner.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("ClusterSpec({})", self.as_dict(py)?.repr()?))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.__repr__(py)
    }

    /// For `pickle` and `copy`.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        let class = py.get_type::<Self>().into_any();
        Ok((class, (self.as_dict(py)?,)))
    }
}

/// Converts an index. An invalid one raises `NoSuchTaskError`, as a missing task does.
fn index(py: Python<'_>, spec: &Inner, job: &str, index: &Bound<'_, PyAny>) -> PyResult<u32> {
    if let Ok(index) = index.extract::<u32>() {
        return Ok(index);
    }
    spec.num_tasks(job).map_err(raise(py))?;
    let text = index.repr()?.to_string();
    let class = py.import("longshore.errors")?.getattr("NoSuchTaskError")?;
    let message = format!("No task with index {text} in job '{job}'");
    let error = PyErr::from_value(class.call1((message,))?);
    Err(error)
}
