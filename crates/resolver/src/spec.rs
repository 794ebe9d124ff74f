//! `ClusterSpec`: the tasks of a distributed job and their addresses.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What is wrong with a spec, or with a question to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A job that the spec does not have.
    #[error("No such job in cluster: '{0}'")]
    NoSuchJob(String),
    /// A task that the job does not have.
    #[error("No task with index {index} in job '{job}'")]
    NoSuchTask {
        /// The job asked.
        job: String,
        /// The index asked for.
        index: u32,
    },
    /// An address that is no text.
    #[error("Task address must be a string, but task {index} of job '{job}' has {value}")]
    Address {
        /// The job it stands in.
        job: String,
        /// The task's index, as written.
        index: String,
        /// The address, as written.
        value: String,
    },
    /// A task index that is negative, no whole number, or too large.
    #[error("Task index must be a whole number, 0 or above, but job '{job}' has a task {index}")]
    Index {
        /// The job it stands in.
        job: String,
        /// The index, as written.
        index: String,
    },
    /// Something else than a list or a map of addresses.
    #[error(
        "The tasks of job '{job}' must be a list of addresses or a map from index to address, but are {value}"
    )]
    Tasks {
        /// The job.
        job: String,
        /// What stands there.
        value: String,
    },
    /// Something else than a map of jobs.
    #[error("A cluster spec must be a map from job name to tasks, but is {0}")]
    Shape(String),
}

/// Jobs (roles) with their tasks: index → `address:port`.
///
/// Behaves as TensorFlow's `tf.train.ClusterSpec`: dense jobs read as lists,
/// sparse ones (with holes) as maps from index to address; an index keeps its
/// meaning either way, so `["a"]` and `{0: "a"}` are equal.
///
/// ```
/// use longshore_resolver::ClusterSpec;
/// use serde_json::json;
/// let spec = ClusterSpec::from_value(&json!({"worker": ["a:1", "b:1"], "ps": {"1": "c:1"}})).unwrap();
/// assert_eq!(spec.as_dict(), json!({"worker": ["a:1", "b:1"], "ps": {"1": "c:1"}}));
/// assert_eq!(spec.task_address("ps", 1), Ok("c:1"));
/// assert_eq!(spec.job_tasks("ps").unwrap(), [None, Some("c:1")]);
/// assert_eq!(spec.task_address("tpu", 0).unwrap_err().to_string(), "No such job in cluster: 'tpu'");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ClusterSpec {
    jobs: BTreeMap<String, BTreeMap<u32, String>>,
}

impl ClusterSpec {
    /// A spec without jobs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads jobs as lists of addresses, or as maps from index to address.
    ///
    /// # Errors
    /// Names the job, and the index or address that is none.
    pub fn from_value(value: &Value) -> Result<Self, SpecError> {
        let jobs = value
            .as_object()
            .ok_or_else(|| SpecError::Shape(value.to_string()))?;
        let mut spec = Self::new();
        for (job, tasks) in jobs {
            spec.add_job(job);
            let address = |index: &str, value: &Value| match value {
                Value::String(address) => Ok(address.clone()),
                value => Err(SpecError::Address {
                    job: job.clone(),
                    index: index.to_owned(),
                    value: value.to_string(),
                }),
            };
            match tasks {
                Value::Array(list) => {
                    for (index, value) in (0..).zip(list) {
                        spec.set(job, index, address(&index.to_string(), value)?);
                    }
                }
                Value::Object(map) => {
                    for (key, value) in map {
                        let index = key.parse().map_err(|_| SpecError::Index {
                            job: job.clone(),
                            index: key.clone(),
                        })?;
                        spec.set(job, index, address(key, value)?);
                    }
                }
                other => {
                    return Err(SpecError::Tasks {
                        job: job.clone(),
                        value: other.to_string(),
                    });
                }
            }
        }
        Ok(spec)
    }

    /// Adds a job without tasks, unless it is there.
    pub fn add_job(&mut self, job: &str) {
        if !self.jobs.contains_key(job) {
            self.jobs.insert(job.to_owned(), BTreeMap::new());
        }
    }

    /// Sets the address of one task, adding the job when it is new.
    pub fn set(&mut self, job: &str, index: u32, address: impl Into<String>) {
        self.jobs
            .entry(job.to_owned())
            .or_default()
            .insert(index, address.into());
    }

    /// Adds a task after the last one of the job and gives its index.
    pub fn push(&mut self, job: &str, address: impl Into<String>) -> u32 {
        let tasks = self.jobs.entry(job.to_owned()).or_default();
        let index = tasks
            .keys()
            .next_back()
            .map_or(0, |last| last.saturating_add(1));
        tasks.insert(index, address.into());
        index
    }

    /// Whether it has no jobs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The names of the jobs, sorted.
    pub fn jobs(&self) -> impl Iterator<Item = &str> {
        self.jobs.keys().map(String::as_str)
    }

    fn job(&self, job: &str) -> Result<&BTreeMap<u32, String>, SpecError> {
        self.jobs
            .get(job)
            .ok_or_else(|| SpecError::NoSuchJob(job.to_owned()))
    }

    /// How many tasks the job has; holes do not count.
    ///
    /// # Errors
    /// [`SpecError::NoSuchJob`].
    pub fn num_tasks(&self, job: &str) -> Result<usize, SpecError> {
        Ok(self.job(job)?.len())
    }

    /// The indices of the job's tasks, sorted.
    ///
    /// # Errors
    /// [`SpecError::NoSuchJob`].
    pub fn task_indices(&self, job: &str) -> Result<Vec<u32>, SpecError> {
        Ok(self.job(job)?.keys().copied().collect())
    }

    /// The address of one task.
    ///
    /// # Errors
    /// [`SpecError::NoSuchJob`] and [`SpecError::NoSuchTask`].
    pub fn task_address(&self, job: &str, index: u32) -> Result<&str, SpecError> {
        let tasks = self.job(job)?;
        let address = tasks.get(&index).ok_or_else(|| SpecError::NoSuchTask {
            job: job.to_owned(),
            index,
        })?;
        Ok(address)
    }

    /// The addresses of the job's tasks by index, `None` for holes.
    ///
    /// A sparse job with a very high index gives a list as long as that.
    ///
    /// # Errors
    /// [`SpecError::NoSuchJob`].
    pub fn job_tasks(&self, job: &str) -> Result<Vec<Option<&str>>, SpecError> {
        let tasks = self.job(job)?;
        let length = tasks
            .keys()
            .next_back()
            .map_or(0, |last| *last as usize + 1);
        let mut list = vec![None; length];
        for (index, address) in tasks {
            list[*index as usize] = Some(address.as_str());
        }
        Ok(list)
    }

    /// The tasks of a job with their indices, sorted; nothing for a job that
    /// is not there.
    pub fn tasks(&self, job: &str) -> impl Iterator<Item = (u32, &str)> {
        self.jobs
            .get(job)
            .into_iter()
            .flatten()
            .map(|(index, address)| (*index, address.as_str()))
    }

    /// The spec as a map: dense jobs as lists, sparse jobs as maps.
    #[must_use]
    pub fn as_dict(&self) -> Value {
        let jobs = self.jobs.iter().map(|(job, tasks)| {
            let dense = tasks
                .keys()
                .copied()
                .eq(0..u32::try_from(tasks.len()).unwrap_or(u32::MAX));
            let tasks = if dense {
                tasks.values().cloned().map(Value::String).collect()
            } else {
                let map = tasks
                    .iter()
                    .map(|(i, address)| (i.to_string(), address.clone().into()));
                Value::Object(map.collect())
            };
            (job.clone(), tasks)
        });
        Value::Object(jobs.collect::<Map<_, _>>())
    }

    /// The spec in the shape of TensorFlow's `ClusterDef` message, in JSON:
    /// jobs and tasks sorted.
    #[must_use]
    pub fn as_cluster_def(&self) -> Value {
        let jobs: Vec<Value> = self
            .jobs
            .iter()
            .map(|(name, tasks)| {
                let tasks: Map<_, _> = tasks
                    .iter()
                    .map(|(i, address)| (i.to_string(), address.clone().into()))
                    .collect();
                serde_json::json!({"name": name, "tasks": tasks})
            })
            .collect();
        serde_json::json!({"job": jobs})
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> ClusterSpec {
        ClusterSpec::from_value(&value).unwrap()
    }

    #[test]
    fn lists_and_dense_maps_are_equal() {
        let list = spec(json!({"worker": ["a", "b"]}));
        let map = spec(json!({"worker": {"0": "a", "1": "b"}}));
        assert_eq!(list, map);
        assert_eq!(map.as_dict(), json!({"worker": ["a", "b"]}));
        assert_ne!(list, spec(json!({"worker": ["b", "a"]})));
        assert_ne!(list, spec(json!({"worker": ["a", "b"], "ps": []})));
    }

    #[test]
    fn sparse_jobs_keep_their_indices() {
        let spec = spec(json!({"worker": {"3": "d", "1": "b"}}));
        assert_eq!(spec.num_tasks("worker"), Ok(2));
        assert_eq!(spec.task_indices("worker"), Ok(vec![1, 3]));
        assert_eq!(
            spec.job_tasks("worker"),
            Ok(vec![None, Some("b"), None, Some("d")])
        );
        assert_eq!(
            spec.as_cluster_def(),
            json!({"job": [{"name": "worker", "tasks": {"1": "b", "3": "d"}}]})
        );
    }

    #[test]
    fn errors_are_worded_as_tensorflow_words_them() {
        let spec = spec(json!({"worker": ["a"]}));
        let message = |error: SpecError| error.to_string();
        assert_eq!(
            message(spec.num_tasks("x").unwrap_err()),
            "No such job in cluster: 'x'"
        );
        assert_eq!(
            message(spec.task_address("worker", 3).unwrap_err()),
            "No task with index 3 in job 'worker'"
        );
    }

    #[test]
    fn wrong_values_are_named() {
        let error = |value: Value| ClusterSpec::from_value(&value).unwrap_err().to_string();
        assert!(error(json!({"worker": ["a", 7]})).contains("task 1 of job 'worker' has 7"));
        assert!(error(json!({"worker": {"-1": "a"}})).contains("job 'worker' has a task -1"));
        assert!(error(json!({"worker": {"1.5": "a"}})).contains("1.5"));
        assert!(error(json!({"worker": "a"})).contains("\"a\""));
        assert!(error(json!(["a"])).contains("map from job name"));
    }

    #[test]
    fn empty_reads_as_false_and_keeps_empty_jobs() {
        assert!(ClusterSpec::new().is_empty());
        let spec = spec(json!({"ps": []}));
        assert!(!spec.is_empty());
        assert_eq!(spec.as_dict(), json!({"ps": []}));
        assert_eq!(spec.job_tasks("ps"), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn the_dict_reads_back_as_the_same_spec(
            jobs in proptest::collection::btree_map(
                "[a-z]{1,8}",
                proptest::collection::btree_map(0_u32..50, "[a-z0-9.:]{1,12}", 0..6),
                0..4,
            )
        ) {
            let mut spec = ClusterSpec::new();
            for (job, tasks) in jobs {
                spec.add_job(&job);
                for (index, address) in tasks {
                    spec.set(&job, index, address);
                }
            }
            prop_assert_eq!(ClusterSpec::from_value(&spec.as_dict()).unwrap(), spec);
        }
    }
}
