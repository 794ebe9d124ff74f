//! Errors of a cluster spec.

/// An invalid cluster spec, or a lookup of a job or task that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The spec does not have the job.
    #[error("No such job in cluster: '{0}'")]
    NoSuchJob(String),
    /// The job does not have the task.
    #[error("No task with index {index} in job '{job}'")]
    NoSuchTask {
        /// The job's name.
        job: String,
        /// The requested index.
        index: u32,
    },
    /// An address is not a string.
    #[error("Task address must be a string, but task {index} of job '{job}' has {value}")]
    Address {
        /// The job's name.
        job: String,
        /// The task's index, as written.
        index: String,
        /// The address, as written.
        value: String,
    },
    /// A task index is negative, not an integer, or too large.
    #[error("Task index must be a whole number, 0 or above, but job '{job}' has a task {index}")]
    Index {
        /// The job's name.
        job: String,
        /// The index, as written.
        index: String,
    },
    /// The tasks of a job are neither a list nor a map of addresses.
    #[error(
        "The tasks of job '{job}' must be a list of addresses or a map from index to address, but are {value}"
    )]
    Tasks {
        /// The job's name.
        job: String,
        /// The value found.
        value: String,
    },
    /// The spec is not a map of jobs.
    #[error("A cluster spec must be a map from job name to tasks, but is {0}")]
    Shape(String),
}
