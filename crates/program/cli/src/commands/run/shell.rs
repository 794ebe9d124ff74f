//! The parts of the invoking shell's environment that `run` uses: variables by name, environment
//! files, and the environment of tasks on this machine.

use std::{ffi::OsString, path::Path};

use longshore::launcher::{Bundle, Caller, RunSpec, config};

use crate::{
    error::{Error, Kind, Result},
    ui,
};

fn refused(error: &config::ConfigError) -> Error {
    Error::from_source(Kind::Usage, error)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The `--env` flags. Names without a value get it from this shell.
pub(super) fn passed_through(flags: &[String]) -> Result<Vec<String>> {
    config::pass_through(flags, variable).map_err(|error| refused(&error))
}

/// The variables of all `--env-file` flags.
pub(super) fn of_files(files: &[impl AsRef<Path>]) -> Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    for path in files {
        let path = path.as_ref();
        let file = config::EnvFile::load(path, variable).map_err(|error| refused(&error))?;
        if !file.quoted.is_empty() {
            ui::warning(format!(
                "{}: quotation marks are part of the value of {}, as with `docker run --env-file`",
                path.display(),
                file.quoted.join(", ")
            ));
        }
        variables.extend(file.variables);
    }
    Ok(variables)
}

/// Patterns that exclude environment files from the bundle, because their values are stored in
/// the run's Secret.
pub(super) fn left_out(files: &[impl AsRef<Path>], folder: &Path) -> Vec<String> {
    let Ok(folder) = folder.canonicalize() else {
        return Vec::new();
    };
    let below = files.iter().filter_map(|file| {
        let file = file.as_ref().canonicalize().ok()?;
        let path = file.strip_prefix(&folder).ok()?.to_str()?;
        Some(format!("/{}", literal(path)))
    });
    below.collect()
}

/// A .gitignore pattern that matches only this path.
fn literal(path: &str) -> String {
    let mut pattern = String::new();
    for c in path.chars() {
        if "*?[]\\!# ".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Records the environment of this shell for tasks on this machine.
pub(super) fn record(spec: &mut RunSpec, here: &Path, folder: &Path, bundle: Option<&Bundle>) {
    let of_shell = |name: &str| -> Option<OsString> { std::env::var_os(name) };
    let recorded = Caller::record(of_shell, here);
    if !recorded.left_out.is_empty() {
        ui::warning(format!(
            "{} of this shell is too long or not UTF-8, and is not passed to the tasks",
            recorded.left_out.join(", ")
        ));
    }
    let mut caller = recorded.caller;
    if let Some(bundle) = bundle {
        let folder = here.join(folder);
        for role in &spec.roles {
            caller.link_environments(&folder, &role.command, |path| bundle.contains(path));
        }
    }
    spec.caller = Some(caller);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_pattern() {
        assert_eq!(literal("a/.env"), "a/.env");
        assert_eq!(literal("[a] *"), "\\[a\\]\\ \\*");
    }
}
