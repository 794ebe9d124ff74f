//! The environment variables of a task. Pure, except for the path of this program.

use std::path::Path;

use super::BootstrapError;
use crate::{caller::Caller, pod::PodConfig, sweep};

/// The changes to the environment of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Names and values.
    pub variables: Vec<(String, String)>,
    /// Framework variables that the user sets, and that are not changed.
    pub kept: Vec<&'static str>,
    /// Variables that the task must not have.
    pub removed: Vec<String>,
}

/// The environment of a task: the recorded variables of the invoking shell, and the variables of
/// the run, the task's role and index, and the frameworks. The user's own variables take
/// precedence.
///
/// # Errors
/// [`BootstrapError::Task`] for a task that the run does not have.
pub fn environment(
    config: &PodConfig,
    role: &str,
    index: u32,
    caller: &Caller,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Environment, BootstrapError> {
    let job = config.job();
    // For frameworks, each combination of a sweep is a job with one task.
    let task = if config.sweep.is_some() { 0 } else { index };
    let own = config.roles.iter().find(|known| known.name == role);
    let address = job.spec().task_address(role, task)?.to_owned();
    let count = match &config.sweep {
        Some(sweep) => sweep.combinations.len(),
        None => own.map_or(0, |own| own.tasks.len()),
    };
    let mut environment = Environment::default();
    for (name, value) in &caller.env {
        match value {
            Some(value) if name == "PATH" => {
                let path = with_program(value);
                environment.variables.push((name.clone(), path));
            }
            Some(value) => environment.variables.push((name.clone(), value.clone())),
            None => environment.removed.push(name.clone()),
        }
    }
    let mut set = |name: &str, value: String| environment.variables.push((name.to_owned(), value));
    set("LONGSHORE_RUN", config.run.clone());
    set("LONGSHORE_ROLE", role.to_owned());
    set("LONGSHORE_INDEX", index.to_string());
    set("LONGSHORE_COUNT", count.to_string());
    set("LONGSHORE_CLUSTER", job.spec().as_dict().to_string());
    set("LONGSHORE_ADDRESS", address);
    let users = own.map(|own| &own.env);
    let by_user = |name: &str| {
        let planned = users.and_then(|env| env.get(name).cloned());
        planned.or_else(|| variable(name))
    };
    // Otherwise, Python buffers its output until it exits.
    if by_user("PYTHONUNBUFFERED").is_none() {
        set("PYTHONUNBUFFERED", "1".to_owned());
    }
    for (name, value) in job.variables(role, task)? {
        match by_user(name) {
            None => set(name, value),
            Some(own) if own == value => {}
            Some(_) => environment.kept.push(name),
        }
    }
    if let Some(sweep) = &config.sweep {
        let missing = || BootstrapError::Combination { index, count };
        for (name, value) in sweep.combination(index).ok_or_else(missing)? {
            let variable = sweep::variable(name);
            environment.variables.push((variable, value.to_owned()));
        }
        // A retry has only some of the combinations.
        let retry = sweep.retry.as_ref();
        let in_sweep = retry.and_then(|retry| retry.indices.get(index as usize).copied());
        let in_sweep = in_sweep.unwrap_or(index).to_string();
        environment
            .variables
            .push(("LONGSHORE_COMBINATION".to_owned(), in_sweep));
    }
    let users = users.into_iter().flatten();
    let users = users.map(|(name, value)| (name.clone(), value.clone()));
    environment.variables.extend(users);
    Ok(environment)
}

/// The invoking shell's `PATH`, with the folder of this program at its end, so that tasks find the
/// program.
fn with_program(path: &str) -> String {
    let program = std::env::current_exe().ok();
    let folder = program
        .as_deref()
        .and_then(Path::parent)
        .and_then(Path::to_str);
    match folder {
        Some(folder) if !path.split(':').any(|known| known == folder) => format!("{path}:{folder}"),
        _ => path.to_owned(),
    }
}
