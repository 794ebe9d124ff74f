//! Determines the task of this pod.

use longshore_diagnosis::names::Task;

use super::BootstrapError;

/// Reads the variables of the container.
pub(super) fn this_task(variable: impl Fn(&str) -> Option<String>) -> Result<Task, BootstrapError> {
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
    Ok(Task { role, index })
}
