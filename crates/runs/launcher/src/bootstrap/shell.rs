//! An interactive shell in a task.

use std::{
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    BootstrapError, Places,
    prepare::{Peers, prepare_with},
    start::Attempt,
    terminal,
};

/// The shells, in the order of preference.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// Replaces this process by a shell with the environment of the task's command, in its folder.
///
/// # Errors
/// See [`BootstrapError`].
pub fn shell() -> BootstrapError {
    let places = Places::default();
    let (_, mut prepared) = match prepared_shell(&places) {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    terminal::wait_for_size();
    let attempt = Attempt::new(&prepared, &places.work());
    attempt.error(prepared.exec())
}

/// A shell with the environment of the task's command, in its folder. Returns the shell's path, if
/// it was found, and the command.
pub(super) fn prepared_shell(
    places: &Places,
) -> Result<(Option<PathBuf>, Command), BootstrapError> {
    let [preferred, other] = SHELLS;
    let command = prepared(places, other)?;
    let path = path_variable(&command);
    Ok(match find(preferred, path.as_deref()) {
        Some(found) => {
            let command = prepared(places, preferred)?;
            (Some(found), command)
        }
        None => (find(other, path.as_deref()), command),
    })
}

fn prepared(places: &Places, shell: &str) -> Result<Command, BootstrapError> {
    let variable = |name: &str| std::env::var(name).ok();
    let prepared = prepare_with(places, &[OsString::from(shell)], variable, Peers::Ignore)?;
    Ok(prepared.command)
}

/// The variable PATH of a command.
fn path_variable(command: &Command) -> Option<OsString> {
    match command.get_envs().find(|(name, _)| *name == "PATH") {
        Some((_, path)) => path.map(ToOwned::to_owned),
        None => std::env::var_os("PATH"),
    }
}

/// Finds the program in the folders of the path.
fn find(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    let mut paths = folders.map(|folder| folder.join(program));
    paths.find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
