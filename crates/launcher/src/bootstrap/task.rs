//! Which task this pod is.

use super::BootstrapError;

/// A task of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) role: String,
    pub(super) index: u32,
}

impl Task {
    /// Reads the variables of the container.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, BootstrapError> {
        let role = variable("LONGSHORE_ROLE").filter(|role| !role.is_empty());
        let role = role.ok_or_else(|| BootstrapError::Variable {
            name: "LONGSHORE_ROLE",
            problem: "is not set".to_owned(),
        })?;
        let index = variable("JOB_COMPLETION_INDEX")
            .or_else(|| variable("LONGSHORE_INDEX"))
            .filter(|index| !index.is_empty())
            .unwrap_or_else(|| "0".to_owned());
        let index: u32 = index.parse().map_err(|_| BootstrapError::Variable {
            name: "JOB_COMPLETION_INDEX",
            problem: format!("is {index:?}, which is not a number"),
        })?;
        Ok(Self { role, index })
    }
}
