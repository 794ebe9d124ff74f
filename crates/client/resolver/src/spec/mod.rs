//! `ClusterSpec`: the tasks of a distributed job and their addresses.

mod error;
mod forms;

use std::collections::BTreeMap;

pub use error::SpecError;

/// The tasks of each job (role): index → `address:port`.
///
/// Behaves like TensorFlow's `tf.train.ClusterSpec`: a job with consecutive indices is read as a
/// list, and a job with missing indices as a map from index to address. Both forms mean the same,
/// so that `["a"]` and `{0: "a"}` are equal.
///
/// ```
/// use longshore_resolver::ClusterSpec;
/// use serde_json::json;
/// let spec = ClusterSpec::from_value(&json!({"worker": ["a:1", "b:1"], "ps": {"1": "c:1"}})).unwrap();
/// assert_eq!(spec.as_dict(), json!({"worker": ["a:1", "b:1"], "ps": {"1": "c:1"}}));
/// assert_eq!(spec.task_address("ps", 1), Ok("c:1"));
/// assert!(spec.job_tasks("ps").unwrap().eq([None, Some("c:1")]));
/// assert_eq!(spec.task_address("tpu", 0).unwrap_err().to_string(), "No such job in cluster: 'tpu'");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ClusterSpec {
    jobs: BTreeMap<String, BTreeMap<u32, String>>,
}

impl ClusterSpec {
    /// Creates a spec without jobs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job without tasks, if it does not exist.
    pub fn add_job(&mut self, job: &str) {
        if !self.jobs.contains_key(job) {
            self.jobs.insert(job.to_owned(), BTreeMap::new());
        }
    }

    /// Sets the address of a task. Adds the job if it does not exist.
    pub fn set(&mut self, job: &str, index: u32, address: impl Into<String>) {
        self.jobs
            .entry(job.to_owned())
            .or_default()
            .insert(index, address.into());
    }

    /// Adds a task after the job's last task and returns its index.
    pub fn push(&mut self, job: &str, address: impl Into<String>) -> u32 {
        let tasks = self.jobs.entry(job.to_owned()).or_default();
        let index = tasks
            .keys()
            .next_back()
            .map_or(0, |last| last.saturating_add(1));
        tasks.insert(index, address.into());
        index
    }

    /// Returns true if the spec has no jobs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns the names of the jobs, sorted.
    pub fn jobs(&self) -> impl Iterator<Item = &str> {
        self.jobs.keys().map(String::as_str)
    }

    fn job(&self, job: &str) -> Result<&BTreeMap<u32, String>, SpecError> {
        self.jobs
            .get(job)
            .ok_or_else(|| SpecError::NoSuchJob(job.to_owned()))
    }

    /// Returns the number of tasks of a job. Missing indices do not count.
    ///
    /// # Errors
    /// [`SpecError::NoSuchJob`].
    pub fn num_tasks(&self, job: &str) -> Result<usize, SpecError> {
        Ok(self.job(job)?.len())
    }

    /// Returns the indices of a job's tasks, sorted.
    ///
    /// # Errors
    /// [`SpecError::NoSuchJob`].
    pub fn task_indices(&self, job: &str) -> Result<Vec<u32>, SpecError> {
        Ok(self.job(job)?.keys().copied().collect())
    }

    /// Returns the address of a task.
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

    /// Returns the addresses of a job's tasks, up to the highest index. Missing
    /// indices are `None`.
    ///
    /// # Errors
    /// [`SpecError::NoSuchJob`].
    pub fn job_tasks(&self, job: &str) -> Result<impl Iterator<Item = Option<&str>>, SpecError> {
        let tasks = self.job(job)?;
        // Computed lazily, because a gap between indices can be very large.
        let last = tasks.keys().next_back().copied();
        let indices = last.into_iter().flat_map(|last| 0..=last);
        Ok(indices.map(|index| tasks.get(&index).map(String::as_str)))
    }

    /// Returns the tasks of a job with their indices, sorted. Returns nothing if
    /// the job does not exist.
    pub fn tasks(&self, job: &str) -> impl Iterator<Item = (u32, &str)> {
        self.jobs
            .get(job)
            .into_iter()
            .flatten()
            .map(|(index, address)| (*index, address.as_str()))
    }
}

#[cfg(test)]
mod tests;
