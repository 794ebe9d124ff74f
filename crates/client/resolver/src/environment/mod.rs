//! Clusters that other launchers describe in environment variables: TensorFlow's `TF_CONFIG`,
//! Slurm and SageMaker. Pure: the variables are arguments.

mod hostlist;
mod sagemaker;
mod slurm;
#[cfg(test)]
mod tests;
mod tf_config;

use crate::spec::{ClusterSpec, SpecError};

pub use sagemaker::{SAGEMAKER_PORT, sagemaker};
pub use slurm::{SLURM_PORT, SlurmOptions, slurm};
pub use tf_config::tf_config;

/// The cluster of a process, and its own task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Described {
    /// The tasks and their addresses.
    pub spec: ClusterSpec,
    /// The role and the index of the process, if the variables name them.
    pub task: Option<(String, u32)>,
    /// The scheme of the URLs of tasks, if the variables name it.
    pub rpc_layer: Option<String>,
    /// The URL of the master, if the variables name it.
    pub session_master: Option<String>,
    /// TensorFlow's name of the environment; empty outside of Google.
    pub environment: String,
}

/// The reason why variables do not describe a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A variable is not set.
    #[error("the variable {name} is not set: {remedy}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// A hint that names the software that sets it.
        remedy: &'static str,
    },
    /// A variable has another format.
    #[error("the variable {name} is invalid: {problem}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// The problem.
        problem: String,
    },
    /// The numbers of tasks do not fit together.
    #[error("{0}")]
    Tasks(String),
    /// The cluster in a variable is invalid.
    #[error("the cluster of {name} is invalid: {source}")]
    Spec {
        /// The variable.
        name: &'static str,
        /// The problem.
        source: SpecError,
    },
}

/// Reads a variable that must be set.
fn required(
    variable: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    remedy: &'static str,
) -> Result<String, EnvironmentError> {
    let value = variable(name).filter(|value| !value.is_empty());
    value.ok_or(EnvironmentError::Missing { name, remedy })
}

fn invalid(name: &'static str, problem: impl std::fmt::Display) -> EnvironmentError {
    EnvironmentError::Invalid {
        name,
        problem: problem.to_string(),
    }
}
