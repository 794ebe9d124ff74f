//! Completes names from the cluster: runs, tasks, pods, kinds, objects.
//!
//! The shell's script calls this program with [`env::COMPLETE`] set, and clap's engine
//! calls these functions for the arguments that refer to them. On errors and timeouts there are
//! no completions; nothing is written to the terminal.

mod ask;
mod line;

use std::{ffi::OsStr, sync::OnceLock};

use clap_complete::{
    CompleteEnv,
    engine::CompletionCandidate,
    env::{EnvCompleter, Shells},
};

use crate::env;
use line::Line;

/// The line to complete, if the shell requests completions.
static LINE: OnceLock<Line> = OnceLock::new();

/// If the shell requests completions, prints them and exits. `program` describes the command
/// line.
pub(crate) fn answer_shell(program: fn() -> clap::Command) {
    if std::env::var_os(env::COMPLETE).is_some() {
        let arguments = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        LINE.get_or_init(|| Line::read(&program(), &words(arguments)));
    }
    CompleteEnv::with_factory(program)
        .var(env::COMPLETE)
        .complete();
}

/// Generates a shell's script, which calls `program` for each completion.
pub(crate) fn script(shell: &str, program: &str) -> Option<Vec<u8>> {
    let shells = Shells::builtins();
    let shell: &dyn EnvCompleter = shells.completer(shell)?;
    let mut script = Vec::new();
    let written = shell.write_registration(
        env::COMPLETE,
        "longshore",
        "longshore",
        program,
        &mut script,
    );
    written.ok().map(|()| script)
}

/// Names of runs.
pub(crate) fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, ask::Names::Runs)
}

/// Names of runs, tasks and pods.
pub(crate) fn logs(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, ask::Names::RunsTasksAndPods)
}

/// Active tasks, and pods.
pub(crate) fn tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, ask::Names::TasksAndPods)
}

/// Kinds; after `KIND/`, names of objects.
pub(crate) fn kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, ask::Names::Kinds)
}

/// Names of objects of the kind that the line names.
pub(crate) fn objects(current: &OsStr) -> Vec<CompletionCandidate> {
    candidates(current, ask::Names::Objects)
}

/// The maximum number of candidates.
const MOST: usize = 500;

fn candidates(current: &OsStr, wanted: ask::Names) -> Vec<CompletionCandidate> {
    let (Some(line), Some(current)) = (LINE.get(), current.to_str()) else {
        return Vec::new();
    };
    let names = ask::names(line, wanted, current);
    let names = names.into_iter().filter(|name| name.starts_with(current));
    names.take(MOST).map(CompletionCandidate::new).collect()
}

/// The words of the line to complete, without the program name. They follow `--`.
fn words(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let words = arguments.skip_while(|word| word != "--");
    words.skip(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_follows_the_dashes() {
        let arguments = ["longshore", "--", "longshore", "logs", "dig", "--", "x"];
        let words = words(arguments.into_iter().map(str::to_owned));
        assert_eq!(words, ["logs", "dig", "--", "x"]);
    }

    #[test]
    fn each_shell_has_a_script() {
        for shell in ["bash", "zsh", "fish"] {
            let script = script(shell, "/opt/bin/longshore").unwrap_or_default();
            let script = String::from_utf8_lossy(&script).into_owned();
            assert!(script.contains("/opt/bin/longshore"), "{script}");
            assert!(script.contains(env::COMPLETE), "{script}");
        }
        assert!(script("csh", "longshore").is_none());
    }
}
