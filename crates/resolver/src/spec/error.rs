//! What is wrong with a spec, or with a question to it.

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
