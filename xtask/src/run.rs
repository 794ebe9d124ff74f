//! Running other programs, from the repository's root.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

/// What went wrong, for a person.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// The target folder in use.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // What `cargo run` says of this program is not true of what it builds; some
    // build scripts read it, and would run again each time.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if OF_THIS_PROGRAM
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Beginnings of the variables that `cargo run` sets about what it runs.
const OF_THIS_PROGRAM: [&str; 4] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_PACKAGE",
];

/// Runs a command to its end, its output shown.
pub(crate) fn finish(command: &mut Command) -> Outcome {
    let name = describe(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` failed: {status}")),
        Err(error) => Err(format!("`{name}` cannot be started: {error}")),
    }
}

/// Runs a command to its end, its output shown; hands on each line of it.
pub(crate) fn read_lines(command: &mut Command, mut read: impl FnMut(&str)) -> Outcome {
    let name = describe(command);
    let failed = |error| format!("`{name}` cannot be started: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let lines = child.stdout.take().map(BufReader::new).into_iter();
    for line in lines.flat_map(BufReader::lines).map_while(Result::ok) {
        println!("{line}");
        read(&line);
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` failed: {status}")),
        Err(error) => Err(format!("`{name}` cannot be waited for: {error}")),
    }
}

/// Runs a command to its end and gives its standard output.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let name = describe(command);
    let output = command
        .output()
        .map_err(|error| format!("`{name}` cannot be started: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("`{name}` failed: {}\n{why}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{name}` printed no UTF-8"))
}

fn describe(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
