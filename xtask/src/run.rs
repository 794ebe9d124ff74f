//! Runs other programs, from the root of the repository.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

/// A result whose error is a message for the user.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// cargo's target folder.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // `cargo run` sets these variables for xtask. Some build scripts read them, and would run
    // again each time.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if CARGO_RUN_VARIABLES
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Prefixes of the variables with which `cargo run` describes the program that it runs.
const CARGO_RUN_VARIABLES: [&str; 4] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_PACKAGE",
];

/// Runs a command and shows its output; fails if the command fails.
pub(crate) fn run_command(command: &mut Command) -> Outcome {
    let name = command_line(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` failed: {status}")),
        Err(error) => Err(format!("cannot start `{name}`: {error}")),
    }
}

/// Runs a command, shows its output, and passes each line to `read`.
pub(crate) fn read_lines(command: &mut Command, mut read: impl FnMut(&str)) -> Outcome {
    let name = command_line(command);
    let failed = |error| format!("cannot start `{name}`: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let lines = child.stdout.take().map(BufReader::new).into_iter();
    for line in lines.flat_map(BufReader::lines).map_while(Result::ok) {
        println!("{line}");
        read(&line);
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` failed: {status}")),
        Err(error) => Err(format!("cannot wait for `{name}`: {error}")),
    }
}

/// Runs a command and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let name = command_line(command);
    let output = command
        .output()
        .map_err(|error| format!("cannot start `{name}`: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("`{name}` failed: {}\n{stderr}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{name}` printed invalid UTF-8"))
}

fn command_line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
