//! Interprets exit codes, signals, and start errors of the container runtime.

use super::{
    Cause, Explanation,
    container::{command, image},
    text::{has_any, short, with_message},
};
use crate::evidence::RunPod as _;
use crate::names;
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
        // Container runtimes add a prefix to the message; the embedded node, which has no
        // images, does not.
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
            "check that the image contains the command, and that the node is healthy",
        )
    }
}

const EMBEDDED: &str = "the embedded cluster finds the program `longshore` on the PATH of the program that started it: install it there, or set its folder in `Options::program_dir`";

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
    let format = has_any(said, &["exec format error"]);
    let (kind, remedy) = match code {
        _ if format => (Cause::WrongArchitecture, ARCHITECTURE),
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

/// A command that ran and exited with this code. `said` is the last line of its log.
pub(super) fn ended(code: i32, signal: i32, said: &str, read_log: &str) -> Explanation {
    if has_any(said, &["exec format error"]) {
        let cause = with_message("its program is built for another architecture", said);
        return Explanation::new(Cause::WrongArchitecture, cause, ARCHITECTURE);
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

/// Whether a line is the last line of a traceback: `ValueError: no such column`.
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
