//! Executes the command of a task.

use std::{ffi::OsString, io, os::unix::process::CommandExt as _, path::Path};

use super::{
    BootstrapError, Places, messages::with_termination_message, outputs::TaskOutputs,
    prepare::prepare, supervise, terminal,
};

/// Waits for the peers, sets the variables, and runs the command. Replaces this process,
/// unless it is the first process of a container, or has to upload outputs: then it supervises the
/// command and returns its exit code.
///
/// # Errors
/// See [`BootstrapError`]. The error is also written to the termination message.
pub fn exec(command: &[OsString]) -> Result<i32, BootstrapError> {
    let places = Places::default();
    let run = || {
        let mut prepared = prepare(&places, command, |name| std::env::var(name).ok())?;
        let outputs = TaskOutputs::of(&places, |name| std::env::var(name).ok())?;
        terminal::wait_for_size();
        let ended = match &outputs {
            None if !supervise::is_first() => Err(prepared.exec()),
            None => supervise::supervise(&mut prepared),
            Some(outputs) => {
                let running = outputs.upload_regularly();
                let ended = supervise::supervise(&mut prepared);
                drop(running);
                if ended.is_ok() {
                    outputs.upload_ended();
                }
                ended
            }
        };
        let name = command.first().map(|word| word.to_string_lossy());
        let name = name.unwrap_or_default().into_owned();
        ended.map_err(|source| cannot_run(name, source, &places.work()))
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
