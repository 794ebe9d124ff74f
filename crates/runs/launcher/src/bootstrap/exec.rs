//! Executes the command of a task.

use std::ffi::{OsStr, OsString};

use longshore_diagnosis::usage::IDLE_EXIT_CODE;

use super::{
    BootstrapError, Places,
    fetch::fetch_once,
    messages::with_termination_message,
    outputs::TaskOutputs,
    prepare::{Prepared, prepare},
    start::Attempt,
    supervise, terminal, together,
    usage::{Monitor, Subject},
};

/// Like [`exec`], but fetches the code first, unless an earlier container of the pod has fetched
/// it. Used in pods without an init container for this.
///
/// # Errors
/// See [`BootstrapError`]. The error is also written to the termination message.
pub fn fetch_and_exec(command: &[OsString]) -> Result<i32, BootstrapError> {
    with_termination_message(fetch_once(&Places::default()))?;
    exec(command)
}

/// Waits for the peers, sets the variables, and supervises the command. Returns its exit code.
///
/// # Errors
/// See [`BootstrapError`]. The error is also written to the termination message.
pub fn exec(command: &[OsString]) -> Result<i32, BootstrapError> {
    let places = Places::default();
    let run = || {
        let mut prepared = prepare(&places, command, |name| std::env::var(name).ok())?;
        let outputs = TaskOutputs::of(&places, |name| std::env::var(name).ok())?;
        terminal::wait_for_size();
        let restarts = prepared.config.restarts.clone();
        let limit = restarts.task_limit.as_ref();
        let attempt = Attempt::new(&prepared.command, &places.work());
        let failed = |source| attempt.error(source);
        let monitor = Monitor::start(subject(&prepared));
        let running = outputs.as_ref().map(TaskOutputs::upload_regularly);
        let ended = match &restarts.together {
            Some(together) => together::run(&mut prepared, together, failed),
            None => {
                let grace = prepared.grace();
                supervise::run(&mut prepared.command, limit, grace).map_err(failed)
            }
        };
        let ends_idle = monitor.is_some_and(Monitor::finish);
        drop(running);
        if let Some(outputs) = &outputs
            && (ended.is_ok() || restarts.together.is_some())
        {
            outputs.upload_ended();
        }
        let code = match ended? {
            _ if ends_idle => IDLE_EXIT_CODE,
            code => code,
        };
        match limit.filter(|_| code == supervise::OVERDUE) {
            Some(limit) => Err(BootstrapError::Overdue {
                seconds: limit.seconds,
            }),
            None => Ok(code),
        }
    };
    with_termination_message(run())
}

/// The settings for the measurements of a task.
fn subject(prepared: &Prepared) -> Subject {
    let config = &prepared.config;
    let own = config
        .roles
        .iter()
        .find(|known| known.name == prepared.task.role);
    let variable = |name: &str| {
        let mut set = prepared.command.get_envs();
        match set.find(|(key, _)| *key == name) {
            Some((_, value)) => value.map(OsStr::to_owned),
            None => std::env::var_os(name),
        }
    };
    Subject {
        accelerators: own.map_or(0, |own| own.accelerators),
        idle: config.idle,
        visible_devices: variable("CUDA_VISIBLE_DEVICES"),
        path: variable("PATH"),
        grace: prepared.grace(),
    }
}
