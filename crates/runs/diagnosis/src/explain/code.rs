//! Interprets exit codes, signals, and start errors of the container runtime.

use super::{
    Cause, Explanation,
    container::{command, image},
    text::{has_any, short, with_message},
};
use crate::evidence::RunPod as _;
use crate::names;
use crate::start_problem::StartProblem;
use longshore_model::facts::PodFacts;

/// A container that the runtime could not start.
pub(super) fn not_started(pod: &PodFacts, container: &str, message: &str) -> Explanation {
    let image = image(pod, container);
    // The run's containers execute `longshore`, which then executes the command.
    let ours = [
        pod.main_name(),
        names::FETCH,
        names::FETCH_DATA,
        names::INSTALL,
    ]
    .contains(&container);
    let lacks_ours = ours
        && !has_any(message, &["exec format error"])
        && has_any(
            message,
            &["longshore", "executable file not found", "no such file"],
        );
    let what = format!("the container {container:?} of image {image:?} could not be started");
    let cause = with_message(what, &short(message));
    if lacks_ours {
        // Container runtimes add a prefix to the message. The embedded node, which has no images,
        // does not.
        let remedy = match message.trim_start().starts_with("exec: ") {
            true => EMBEDDED,
            false => {
                "use an image that contains the program `longshore`, or set `launcher_image` to one that does"
            }
        };
        return Explanation::new(Cause::LauncherMissing, cause, remedy);
    }
    let (kind, remedy) = start_problem(message);
    Explanation::new(kind, cause, remedy)
}

fn start_problem(message: &str) -> (Cause, &'static str) {
    if has_any(message, &["exec format error"]) {
        (Cause::WrongArchitecture, ARCHITECTURE)
    } else if has_any(
        message,
        &[
            "oom-killed",
            "memory limit too low",
            "cannot allocate memory",
        ],
    ) {
        (
            Cause::OutOfMemory,
            "raise `memory`: it is too little to start a program; 256Mi is a usual minimum, and 256m is less than a byte",
        )
    } else if has_any(message, &["too large", "argument list too long"]) {
        (Cause::ContainerStart, StartProblem::LargeTogether.remedy())
    } else if has_any(
        message,
        &[
            "namespace",
            "starting the container failed",
            "mounting the container",
        ],
    ) {
        (
            Cause::ContainerStart,
            "the node lacks a right or a feature of the kernel; see its log and `longshore describe nodes`",
        )
    } else if has_any(message, &["permission denied"]) {
        (
            Cause::NotExecutable,
            "make the file executable, and check its first line",
        )
    } else if has_any(message, &["not found", "no such file"]) {
        (
            Cause::CommandNotFound,
            "check the spelling of the command, and that the image or the folder contains it",
        )
    } else {
        (
            Cause::ContainerStart,
            "see the message, and check that the node is healthy: `longshore describe nodes`",
        )
    }
}

const EMBEDDED: &str = "the embedded cluster finds the program `longshore` on the PATH of the program that started it: install it there, or set its folder in `Options::program_dir`";

const FORMAT: &str = "begin a script with a line such as `#!/bin/sh`; build a program for the node's architecture, or select other nodes with `node_selector`";

const ARCHITECTURE: &str =
    "build the program for the node's architecture, or select other nodes with `node_selector`";

/// A command that the bootstrap could not execute, as reported by its termination message
/// and exit code.
pub(super) fn bootstrap(pod: &PodFacts, code: i32, said: &str) -> Explanation {
    let command = command(pod);
    // A command without arguments is already in the message.
    let cause = if said.ends_with(&command) {
        said.to_owned()
    } else {
        format!("{said} (command: {command})")
    };
    if let Some(problem) = StartProblem::in_text(said) {
        return Explanation::new(cause_of(problem), cause, problem.remedy());
    }
    let (kind, remedy) = match code {
        _ if has_any(said, &["exec format error"]) => (Cause::NotExecutable, FORMAT),
        125 if has_any(said, &["cannot write", "permission denied"])
            && has_any(said, &["permission denied"]) =>
        {
            (
                Cause::ContainerStart,
                "let the user of the task write to this folder: set `fsGroup` or `runAsUser` in a template, or change the owner of the volume",
            )
        }
        127 => (
            Cause::CommandNotFound,
            "check the spelling of the command, and that the image or the folder contains it",
        ),
        126 => (
            Cause::NotExecutable,
            "make the file executable, and check its first line",
        ),
        _ => (Cause::ContainerStart, "read the log of the task"),
    };
    Explanation::new(kind, cause, remedy)
}

fn cause_of(problem: StartProblem) -> Cause {
    match problem {
        StartProblem::OneWord | StartProblem::NotOnPath => Cause::CommandNotFound,
        StartProblem::WrongArchitecture => Cause::WrongArchitecture,
        StartProblem::LargeVariable
        | StartProblem::LargeArgument
        | StartProblem::LargeTogether
        | StartProblem::NoProcess => Cause::ContainerStart,
        _ => Cause::NotExecutable,
    }
}

/// The problem that errors of a shell or an interpreter report, if they could not start a program.
fn said_by_program(said: &str) -> Option<StartProblem> {
    let tables: [(&[&str], StartProblem); 4] = [
        (&["argument list too long"], StartProblem::LargeTogether),
        (
            &[
                "\\r: no such file",
                "\\r': no such file",
                "\\r\u{2019}: no such file",
                "^m: bad interpreter",
                "\r: bad interpreter",
            ],
            StartProblem::WindowsLines,
        ),
        (&["bad interpreter"], StartProblem::MissingInterpreter),
        (
            &["cannot execute binary file"],
            StartProblem::WrongArchitecture,
        ),
    ];
    let mut tables = tables.into_iter();
    let found = tables.find(|(words, _)| has_any(said, words));
    found.map(|(_, problem)| problem)
}

/// A command that ran and exited with this code. `said` is the last line of its log.
pub(super) fn ended(code: i32, signal: i32, said: &str, read_log: &str) -> Explanation {
    // Container runtimes report this about the first program of the container.
    if said.starts_with("exec ") && has_any(said, &["exec format error"]) {
        let cause = with_message("its program is built for another architecture", said);
        return Explanation::new(Cause::WrongArchitecture, cause, ARCHITECTURE);
    }
    if let Some(problem) = said_by_program(said) {
        let cause = with_message(
            format!("its command ended with exit code {code}"),
            &short(said),
        );
        return Explanation::new(cause_of(problem), cause, problem.remedy());
    }
    if has_any(said, &["exec format error"]) {
        let cause = with_message(
            format!("its command ended with exit code {code}"),
            &short(said),
        );
        return Explanation::new(Cause::NotExecutable, cause, FORMAT);
    }
    let signal = match (signal, code) {
        (1.., _) => Some(signal),
        // Shells report a signal as exit code 128 plus its number.
        (_, 129..=159) => Some(code - 128),
        _ => None,
    };
    if let Some(signal) = signal
        && let Some((name, remedy)) = signal_words(signal)
    {
        let cause = match signal {
            9 => format!("killed (exit code {code})"),
            15 => format!("terminated (exit code {code})"),
            _ => format!("terminated by signal {name} (exit code {code})"),
        };
        return Explanation::new(Cause::Signal, cause, remedy).seen(format!("signal {name}"));
    }
    let (kind, hint) = match code {
        126 => (
            Cause::NotExecutable,
            Some("a file that it runs is not executable: check modes and first lines"),
        ),
        127 => (
            Cause::CommandNotFound,
            Some("a program that it calls does not exist: check the image and the folder"),
        ),
        _ => (Cause::ExitCode, None),
    };
    let mut cause = format!("its command ended with exit code {code}");
    if is_error_line(said) {
        cause = with_message(cause, &short(said));
    }
    Explanation::new(kind, cause, hint.unwrap_or(read_log))
}

fn signal_words(signal: i32) -> Option<(&'static str, &'static str)> {
    Some(match signal {
        2 => ("SIGINT", "it was interrupted, as by Ctrl-C"),
        4 => (
            "SIGILL",
            "it is built for a newer processor than the node's: select other nodes or use another build",
        ),
        6 => (
            "SIGABRT",
            "a library aborted: see the last lines of its log",
        ),
        7 => (
            "SIGBUS",
            "the shared memory is often too small: mount an emptyDir of medium Memory at /dev/shm",
        ),
        8 => (
            "SIGFPE",
            "it divided by zero or made another arithmetic error: read its log",
        ),
        9 => (
            "SIGKILL",
            "often caused by too little memory: raise `memory`",
        ),
        11 => (
            "SIGSEGV",
            "a native library crashed: check versions of drivers and packages against each other",
        ),
        13 => ("SIGPIPE", "the reader of its output had exited"),
        15 => (
            "SIGTERM",
            "find out what stopped it: a drain, a deletion, a failed peer",
        ),
        24 => ("SIGXCPU", "it exceeded its limit of CPU time"),
        25 => ("SIGXFSZ", "it exceeded its limit of file size"),
        _ => return None,
    })
}

/// Returns true if a line is the last line of a traceback: `ValueError: no such column`.
fn is_error_line(line: &str) -> bool {
    let Some((name, _)) = line.split_once(':') else {
        return line.ends_with("Error") && !line.contains(' ');
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let last = name.rsplit('.').next().unwrap_or(name);
    (!name.is_empty()
        && name.chars().all(plain)
        && ["Error", "Exception", "Exit", "Interrupt", "Failure"]
            .iter()
            .any(|end| last.ends_with(end)))
        || ["error", "fatal", "panic"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lead_to_the_cause() {
        // The last message of a program, the kind of cause, and a part of the remedy.
        let cases = [
            (
                "OSError: [Errno 8] Exec format error: './run.sh'",
                1,
                Cause::NotExecutable,
                "#!",
            ),
            (
                "exec /longshore/bin/longshore: exec format error",
                255,
                Cause::WrongArchitecture,
                "architecture",
            ),
            (
                "sh: 1: ./a: cannot execute binary file: Exec format error",
                126,
                Cause::WrongArchitecture,
                "architecture",
            ),
            (
                "sh: 1: python3: Argument list too long",
                126,
                Cause::ContainerStart,
                "to a file",
            ),
            (
                "OSError: [Errno 7] Argument list too long: 'python3'",
                1,
                Cause::ContainerStart,
                "to a file",
            ),
            (
                "/usr/bin/env: \u{2018}python3\\r\u{2019}: No such file or directory",
                127,
                Cause::NotExecutable,
                "line endings",
            ),
            (
                "bash: ./a: /bin/sh^M: bad interpreter: No such file or directory",
                126,
                Cause::NotExecutable,
                "line endings",
            ),
            (
                "bash: ./a: /no/python: bad interpreter: No such file or directory",
                126,
                Cause::NotExecutable,
                "interpreter",
            ),
            (
                "sh: 1: ./a: Permission denied",
                126,
                Cause::NotExecutable,
                "executable",
            ),
            (
                "sh: 1: pyton: not found",
                127,
                Cause::CommandNotFound,
                "does not exist",
            ),
            ("ValueError: no such column", 1, Cause::ExitCode, "LOG"),
        ];
        for (said, code, kind, remedy) in cases {
            let found = ended(code, 0, said, "LOG");
            assert_eq!(found.kind, kind, "{said}");
            assert!(found.remedy.contains(remedy), "{said}: {}", found.remedy);
        }
    }

    #[test]
    fn containers_that_do_not_start_are_not_all_about_their_image() {
        let cases = [
            (
                "container init was OOM-killed (memory limit too low?)",
                Cause::OutOfMemory,
                "raise `memory`",
            ),
            (
                "starting the container failed (its user namespace): Operation not permitted (os error 1)",
                Cause::ContainerStart,
                "kernel",
            ),
            (
                "the environment is too large for this system (9 variables, 3000000 bytes): shorten it",
                Cause::ContainerStart,
                "to a file",
            ),
            (
                "exec: \"./train\": permission denied",
                Cause::NotExecutable,
                "executable",
            ),
            (
                "exec: \"x\": executable file not found in $PATH",
                Cause::CommandNotFound,
                "image",
            ),
            ("something else", Cause::ContainerStart, "see the message"),
        ];
        for (message, kind, remedy) in cases {
            let (found, text) = start_problem(message);
            assert_eq!(found, kind, "{message}");
            assert!(text.contains(remedy), "{message}: {text}");
            let blames_image = text.contains("image");
            assert!(
                !blames_image || kind == Cause::CommandNotFound,
                "{message}: {text}"
            );
        }
    }
}
