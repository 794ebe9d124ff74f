//! Finds code of this machine that tasks on this machine import instead of the packed code:
//! editable installs of Python packages, and `PYTHONPATH`.

mod site;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use longshore_diagnosis::explain::Cause;

use crate::{caller::Caller, preflight::Finding};

/// The number of packages that a warning names.
const NAMED: usize = 3;
/// Folders of the system, which are expected in `PYTHONPATH`.
const SYSTEM: [&str; 7] = ["/usr", "/lib", "/lib64", "/opt", "/etc", "/nix", "/snap"];

/// A folder of this machine from which tasks import.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    /// The folder in which the modules are, without links.
    folder: PathBuf,
    /// The file or the variable that refers to it.
    source: String,
}

/// Warnings about code outside of the bundle that tasks import. `folder` is the folder of the code,
/// `command` and `env` belong to a role, and `home` is the user's home folder.
pub(crate) fn warnings(
    caller: &Caller,
    folder: &Path,
    command: &[String],
    env: &BTreeMap<String, String>,
    home: Option<&Path>,
) -> Vec<Finding> {
    let Ok(folder) = folder.canonicalize() else {
        return Vec::new();
    };
    let variable = |name: &str| match env.get(name) {
        Some(value) => Some(value.as_str()),
        None => caller.env.get(name)?.as_deref(),
    };
    let python_path = variable("PYTHONPATH").unwrap_or_default();
    let mut imports = site::of_prefixes(&prefixes(caller, &variable, home));
    imports.extend(of_python_path(python_path, &folder));
    imports.sort();
    imports.dedup_by(|later, first| later.folder == first.folder);
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for import in imports {
        match import.folder.strip_prefix(&folder) {
            Ok(path) if is_copied(path, command, python_path) => {}
            Ok(path) => inside.push((path.to_owned(), import)),
            Err(_) => outside.push(import),
        }
    }
    let inside = (!inside.is_empty()).then(|| of_live(&inside));
    let outside = (!outside.is_empty()).then(|| of_others(&outside));
    inside.into_iter().chain(outside).collect()
}

/// Returns true if tasks import from the copy of a folder first.
fn is_copied(path: &Path, command: &[String], python_path: &str) -> bool {
    let is_named = |entry: &str| !entry.starts_with('/') && is_same(Path::new(entry), path);
    if python_path.split(':').any(is_named) && !python_path.is_empty() {
        return true;
    }
    // An interpreter first searches the folder of its script, or the current folder.
    let program = command.first().and_then(|word| word.rsplit('/').next());
    let is_interpreter = program.is_some_and(|program| program.starts_with("python"));
    let script = command.iter().skip(1).find(|word| !word.starts_with('-'));
    let is_above = script.is_none_or(|script| !script.trim_start_matches("./").contains('/'));
    path.as_os_str().is_empty() && is_interpreter && is_above
}

fn is_same(one: &Path, other: &Path) -> bool {
    let plain = |path: &Path| -> PathBuf {
        let parts = path.components();
        parts
            .filter(|part| !matches!(part, std::path::Component::CurDir))
            .collect()
    };
    plain(one) == plain(other)
}

/// The folders of Python installations from which the tasks import.
fn prefixes<'a>(
    caller: &Caller,
    variable: &impl Fn(&str) -> Option<&'a str>,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let environment = variable("VIRTUAL_ENV").or_else(|| variable("CONDA_PREFIX"));
    let mut prefixes: Vec<PathBuf> = environment.into_iter().map(PathBuf::from).collect();
    prefixes.extend(caller.links.values().cloned());
    let folders = variable("PATH").unwrap_or_default().split(':');
    let mut interpreters = folders.map(Path::new).filter(|folder| {
        ["python3", "python"]
            .iter()
            .any(|name| folder.join(name).is_file())
    });
    let first = interpreters.next();
    if let Some(prefix) = first.and_then(Path::parent) {
        prefixes.push(prefix.to_owned());
        let is_environment = crate::caller::is_environment(prefix);
        if !is_environment {
            // Installations of `pip install --user`, and of Debian.
            prefixes.extend(home.map(|home| home.join(".local")));
            prefixes.push(PathBuf::from("/usr/local"));
        }
    }
    prefixes
}

fn of_python_path(list: &str, code: &Path) -> Vec<Import> {
    let folders = list.split(':').filter(|path| path.starts_with('/'));
    let folders = folders.filter_map(|path| Path::new(path).canonicalize().ok());
    folders
        .filter(|path| {
            let is_of_system = SYSTEM.iter().any(|system| path.starts_with(system));
            path.starts_with(code) || !(is_of_system || site::is_of_packages(path))
        })
        .map(|folder| Import {
            folder,
            source: "PYTHONPATH".to_owned(),
        })
        .collect()
}

/// The warning about folders within the folder of the code.
fn of_live(imports: &[(PathBuf, Import)]) -> Finding {
    let named = listed(imports.iter().map(|(_, import)| import));
    let paths = imports.iter().map(|(path, _)| match path.as_os_str() {
        empty if empty.is_empty() => ".".to_owned(),
        path => path.to_string_lossy().into_owned(),
    });
    let paths: Vec<String> = paths.take(NAMED).collect();
    Finding::new(
        Cause::Unknown,
        format!(
            "tasks import the live code in {named}, and not the packed copy: later changes reach them"
        ),
        format!(
            "add `-e PYTHONPATH={}`, or install the package without `-e` (editable)",
            paths.join(":")
        ),
    )
}

/// The warning about folders outside of the folder of the code.
fn of_others(imports: &[Import]) -> Finding {
    Finding::new(
        Cause::Unknown,
        format!(
            "tasks import code that is outside of the bundle, from {}: it is not packed, and later changes reach them",
            listed(imports.iter())
        ),
        "install the package without `-e` (editable), or move its code into the folder of the run",
    )
}

fn listed<'a>(imports: impl Iterator<Item = &'a Import> + Clone) -> String {
    let more = imports.clone().count().saturating_sub(NAMED);
    let named = imports.take(NAMED);
    let named = named.map(|import| format!("{} ({})", import.folder.display(), import.source));
    let text = named.collect::<Vec<_>>().join(", ");
    match more {
        0 => text,
        more => format!("{text} and {more} more folders"),
    }
}

#[cfg(test)]
mod tests;
