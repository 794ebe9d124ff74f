//! Runs several test programs at a time. `cargo test` runs them one after another, and most of
//! them spend their time waiting.

use std::{
    collections::VecDeque,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::Instant,
};

use serde_json::Value;

use crate::run::{Outcome, output};

/// How many programs run at the same time.
const MAX_RUNNING: usize = 3;

/// A compiled test program.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// The package's folder and the target, as `cli: program`.
    name: String,
    target: String,
    executable: PathBuf,
    /// The package's folder, which is the working directory of the program.
    folder: PathBuf,
}

/// Builds the test programs with this `cargo test` command, runs them with the environment of
/// `prepare`, and passes each line of their output to `read`. Programs of the targets in
/// `left_out` are not run. The error names the programs that failed.
pub(super) fn run(
    build: &mut Command,
    left_out: &[String],
    prepare: impl Fn(&mut Command) + Sync,
    mut read: impl FnMut(&str),
) -> Outcome {
    let messages = output(
        build
            .args(["--no-run", "--message-format=json-render-diagnostics"])
            .stderr(Stdio::inherit()),
    )?;
    let mut programs = programs(&messages);
    programs.retain(|program| !left_out.contains(&program.target));
    let count = programs.len();
    let queue = Mutex::new(VecDeque::from(programs));
    let mut failed = Vec::new();
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..MAX_RUNNING {
            let (send, queue, prepare) = (send.clone(), &queue, &prepare);
            scope.spawn(move || {
                let next = || {
                    queue
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .pop_front()
                };
                while let Some(program) = next() {
                    // The output comes at the end: until then, this names what takes long.
                    println!("running {}", program.name);
                    let mut command = Command::new(&program.executable);
                    command.current_dir(&program.folder);
                    prepare(&mut command);
                    let begin = Instant::now();
                    let done = command.stdin(Stdio::null()).output();
                    if send.send((program, done, begin.elapsed())).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        for (number, (program, done, time)) in receive.iter().enumerate() {
            let Program { name, .. } = program;
            println!(
                "\n{name} ({} of {count}; {:.1} s)",
                number + 1,
                time.as_secs_f64()
            );
            match done {
                Ok(done) => {
                    for line in String::from_utf8_lossy(&done.stdout).lines() {
                        println!("{line}");
                        read(line);
                    }
                    eprint!("{}", String::from_utf8_lossy(&done.stderr));
                    if !done.status.success() {
                        failed.push(format!("{name}: {}", done.status));
                    }
                }
                Err(error) => failed.push(format!("{name}: cannot start: {error}")),
            }
        }
    });
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("test programs failed:\n  {}", failed.join("\n  "))),
    }
}

/// The test programs in cargo's messages.
fn programs(messages: &str) -> Vec<Program> {
    let mut found: Vec<Program> = Vec::new();
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let executable = message["executable"].as_str().map(PathBuf::from);
        let Some(executable) = executable.filter(|_| message["profile"]["test"] == true) else {
            continue;
        };
        let manifest = PathBuf::from(message["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().map(PathBuf::from).unwrap_or_default();
        let package = folder.file_name().unwrap_or_default().to_string_lossy();
        let target = message["target"]["name"].as_str().unwrap_or_default();
        found.push(Program {
            name: format!("{package}: {target}"),
            target: target.to_owned(),
            executable,
            folder,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn test_programs_are_found_in_the_messages() {
        let artifact = |test: bool, executable: Value| {
            serde_json::json!({
                "reason": "compiler-artifact", "manifest_path": "/w/crates/cli/Cargo.toml",
                "target": {"name": "program"}, "profile": {"test": test},
                "executable": executable,
            })
            .to_string()
        };
        let messages = [
            artifact(false, "/t/longshore".into()),
            artifact(true, Value::Null),
            "not JSON".to_owned(),
            artifact(true, "/t/program-1".into()),
        ];
        let expected = Program {
            name: "cli: program".into(),
            target: "program".into(),
            executable: "/t/program-1".into(),
            folder: "/w/crates/cli".into(),
        };
        assert_eq!(programs(&messages.join("\n")), [expected]);
    }

    #[test]
    fn output_is_read_and_failed_programs_are_named() {
        let messages: Vec<String> = [
            ("true", "echo ok"),
            ("false", "exit 3"),
            ("slow", "echo slow"),
        ]
        .iter()
        .map(|(name, script)| {
            let folder = tempfile::tempdir().unwrap().keep();
            let executable = folder.join(name);
            std::fs::write(&executable, format!("#!/bin/sh\n{script}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&executable, mode).unwrap();
            serde_json::json!({
                "manifest_path": folder.join("Cargo.toml"), "target": {"name": name},
                "profile": {"test": true}, "executable": executable,
            })
            .to_string()
        })
        .collect();
        let mut build = Command::new("printf");
        build.args(["%s\\n", &messages[0], &messages[1], &messages[2]]);
        // `run` appends options for cargo; `printf` prints them as further lines.
        let mut lines = Vec::new();
        let done = run(
            &mut build,
            &["slow".to_owned()],
            |_| {},
            |line| lines.push(line.to_owned()),
        );
        assert_eq!(lines, ["ok"]);
        let problem = done.unwrap_err();
        assert!(problem.contains("false: exit status: 3"), "{problem}");
        assert!(!problem.contains("true:"), "{problem}");
    }
}
