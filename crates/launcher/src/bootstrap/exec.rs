//! Executes the command of a task.

use std::{ffi::OsString, io, os::unix::process::CommandExt as _, path::Path};

use super::{
    BootstrapError, Places, messages::with_termination_message, outputs::TaskOutputs,
    prepare::prepare, supervise, terminal, together,
};

/// Waits for the peers, sets the variables, and runs the command. Replaces this process,
/// unless it is the first process of a container, has to upload outputs, or the task has a time
/// limit or restarts together with the others: then it supervises the command and returns its
/// exit code.
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
        let name = command.first().map(|word| word.to_string_lossy());
        let name = name.unwrap_or_default().into_owned();
        let failed = |source| cannot_run(name.clone(), source, &places.work());
        let is_supervised = supervise::is_first() || limit.is_some() || outputs.is_some();
        let running = outputs.as_ref().map(TaskOutputs::upload_regularly);
        let ended = match &restarts.together {
            Some(together) => together::run(&mut prepared, together, failed),
            None if is_supervised => {
                let grace = prepared.grace();
                let ended = supervise::run(&mut prepared.command, limit, grace);
                ended.map_err(failed)
            }
            None => return Err(failed(prepared.command.exec())),
        };
        drop(running);
        if let Some(outputs) = &outputs
            && (ended.is_ok() || restarts.together.is_some())
        {
            outputs.upload_ended();
        }
        let code = ended?;
        match limit.filter(|_| code == supervise::OVERDUE) {
            Some(limit) => Err(BootstrapError::Overdue {
                seconds: limit.seconds,
            }),
            None => Ok(code),
        }
    };
    with_termination_message(run())
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
