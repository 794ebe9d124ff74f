//! Runs a command while this process runs a server.

use std::{
    ffi::{OsStr, OsString},
    os::unix::process::ExitStatusExt as _,
    path::Path,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    env,
    error::{Error, Kind, Result},
    interrupt::{Caught, Interrupt},
};

/// Variables that select a cluster for other programs and for this one.
pub(crate) fn kubeconfig_variables(path: &Path) -> Vec<(&'static str, OsString)> {
    let path = path.as_os_str().to_owned();
    vec![(env::KUBECONFIG, path.clone()), ("KUBECONFIG", path)]
}

/// Runs a command to its end, with additional variables. Returns its exit code. SIGTERM ends the
/// command and then this program.
pub(crate) async fn run(
    command: &[OsString],
    variables: Vec<(&'static str, OsString)>,
    signals: &mut Interrupt,
) -> Result<u8> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::usage("no command to run"));
    };
    let child = tokio::process::Command::new(program)
        .args(arguments)
        .env_remove(env::CONTEXT)
        .envs(variables)
        .spawn();
    let mut child = child.map_err(|error| not_started(program, &error))?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            // The terminal sends Ctrl-C to the command, too. This program ends when the command
            // does.
            caught = signals.next() => if caught == Caught::Terminate {
                let id = child.id().and_then(|id| i32::try_from(id).ok());
                if let Some(process) = id.and_then(Pid::from_raw) {
                    // Fails if the command has just ended.
                    let _ = kill_process(process, Signal::TERM);
                }
            },
        }
    };
    let status = status.map_err(|error| not_started(program, &error))?;
    let code = status.code().or_else(|| status.signal()?.checked_add(128));
    Ok(u8::try_from(code.unwrap_or(1)).unwrap_or(1))
}

/// The error for a command that cannot be started.
pub(crate) fn not_started(program: &OsStr, error: &std::io::Error) -> Error {
    let program = program.display();
    Error::new(Kind::NotStarted, format!("cannot run {program}: {error}"))
}
