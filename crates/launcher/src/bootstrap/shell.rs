//! An interactive shell in a task.

use std::{ffi::OsString, os::unix::process::CommandExt as _, path::Path};

use super::{
    BootstrapError, Places,
    exec::cannot_run,
    prepare::{Peers, prepare_with},
    terminal,
};

/// The shells, in the order of preference.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// Replaces this process by a shell with the environment of the task's command, in its folder.
///
/// # Errors
/// See [`BootstrapError`].
pub fn shell() -> BootstrapError {
    let path = |prepared: &std::process::Command| {
        let own = prepared.get_envs().find(|(name, _)| *name == "PATH");
        match own {
            Some((_, path)) => path.map(ToOwned::to_owned),
            None => std::env::var_os("PATH"),
        }
    };
    let places = Places::default();
    let mut prepared = match prepared(&places, SHELLS[1]) {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    if is_found(SHELLS[0], path(&prepared).as_deref()) {
        prepared = match self::prepared(&places, SHELLS[0]) {
            Ok(prepared) => prepared,
            Err(error) => return error,
        };
    }
    terminal::wait_for_size();
    let name = prepared.get_program().to_string_lossy().into_owned();
    cannot_run(name, prepared.exec(), &places.work())
}

fn prepared(places: &Places, shell: &str) -> Result<std::process::Command, BootstrapError> {
    let variable = |name: &str| std::env::var(name).ok();
    let prepared = prepare_with(places, &[OsString::from(shell)], variable, Peers::Ignore)?;
    Ok(prepared.command)
}

/// Whether a program is in a folder of the path.
fn is_found(program: &str, path: Option<&std::ffi::OsStr>) -> bool {
    let folders = path.map(std::env::split_paths).into_iter().flatten();
    let mut paths = folders.map(|folder| folder.join(program));
    paths.any(|path: std::path::PathBuf| is_executable(&path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
