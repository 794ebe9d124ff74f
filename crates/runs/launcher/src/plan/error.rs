//! Errors of making a plan.

/// An error of making a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The pods' configuration file cannot be serialized.
    #[error("cannot write the run's configuration: {0}")]
    Config(#[source] serde_json::Error),
    /// The data of a role was not prepared.
    #[error(
        "the data {name:?} is not prepared: launch the run with `RunSpec::submit`, or prepare it with `PackedRun::prepare_data`"
    )]
    Data {
        /// The name of the data.
        name: String,
    },
    /// An object cannot be serialized.
    #[error("cannot write an object of the run as JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The pod template of a role is invalid.
    #[error(
        "invalid pod template for role \"{role}\": {problem}; correct `template` or `affinity`"
    )]
    Pod {
        /// The role.
        role: String,
        /// The problem.
        problem: String,
    },
    /// A part of the run is larger than Kubernetes or the kernel permits.
    #[error("{what} has {size} bytes, and {holder} can have at most {limit}: {remedy}")]
    TooLong {
        /// The part.
        what: String,
        /// The size of the part in bytes.
        size: usize,
        /// The object or value that has the limit.
        holder: &'static str,
        /// The limit in bytes.
        limit: usize,
        /// The recommended action.
        remedy: &'static str,
    },
    /// A number exceeds the range of its field.
    #[error("invalid {option} {value}: use at most {}", i32::MAX)]
    TooLarge {
        /// The option of the run.
        option: &'static str,
        /// The value of the option.
        value: u64,
    },
}

/// A number for a field of 32 bits.
pub(super) fn int32(option: &'static str, value: u64) -> Result<i32, PlanError> {
    i32::try_from(value).map_err(|_| PlanError::TooLarge { option, value })
}
