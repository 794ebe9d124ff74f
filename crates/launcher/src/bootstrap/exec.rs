//! Executes the command of a task.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::Command,
};

use longshore_diagnosis::usage::IDLE_EXIT_CODE;

use super::{
    BootstrapError, Places,
    messages::with_termination_message,
    prepare::prepare,
    supervise, terminal,
    usage::{Monitor, Subject},
};

/// Waits for the peers, sets the variables, and runs the command. Replaces this process,
/// unless it measures the container or is its first process: then it supervises the command
/// and returns its exit code.
///
/// # Errors
/// See [`BootstrapError`]. The error is also written to the termination message.
pub fn exec(command: &[OsString]) -> Result<i32, BootstrapError> {
    let places = Places::default();
    let run = || {
        let mut prepared = prepare(&places, command, |name| std::env::var(name).ok())?;
        terminal::wait_for_size();
        let ended = match supervise::is_needed() {
            true => measured(&mut prepared, &places),
            false => Err(prepared.exec()),
        };
        let name = command.first().map(|word| word.to_string_lossy());
        let name = name.unwrap_or_default().into_owned();
        ended.map_err(|source| cannot_run(name, source, &places.work()))
    };
    with_termination_message(run())
}

/// Supervises the command, and measures what the container uses.
fn measured(command: &mut Command, places: &Places) -> io::Result<i32> {
    let monitor = Monitor::start(subject(command, places));
    let ended = supervise::supervise(command);
    let ends_idle = monitor.is_some_and(Monitor::finish);
    match ended {
        Ok(_) if ends_idle => Ok(IDLE_EXIT_CODE),
        ended => ended,
    }
}

/// What to measure of a command.
fn subject(command: &Command, places: &Places) -> Subject {
    // The command would not have been prepared without the configuration.
    let config = places.read_config().ok();
    let role = std::env::var("LONGSHORE_ROLE").unwrap_or_default();
    let roles = config.iter().flat_map(|config| &config.roles);
    let own = roles.clone().find(|known| known.name == role);
    let variable = |name: &str| {
        let mut set = command.get_envs();
        match set.find(|(key, _)| *key == name) {
            Some((_, value)) => value.map(OsStr::to_owned),
            None => std::env::var_os(name),
        }
    };
    Subject {
        accelerators: own.map_or(0, |own| own.accelerators),
        idle: config.as_ref().and_then(|config| config.idle),
        visible_devices: variable("CUDA_VISIBLE_DEVICES"),
        path: variable("PATH"),
    }
}

pub(super) fn cannot_run(command: String, source: io::Error, work: &Path) -> BootstrapError {
    // A missing interpreter or library also yields "not found".
    let is_path = command.contains('/');
    let exists = is_path && work.join(&command).exists();
    match source.kind() {
        io::ErrorKind::NotFound if !exists => BootstrapError::NotFound(command),
        _ => BootstrapError::CannotRun { command, source },
    }
}
