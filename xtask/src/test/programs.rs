//! Runs several test programs at a time. `cargo test` runs them one after another, and most of
//! them spend part of their time waiting.

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

/// The maximum number of programs that run at the same time.
const MAX_RUNNING: usize = 3;

/// A compiled test program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// The package's folder and the target, as `cli: program`.
    name: String,
    pub(super) target: String,
    executable: PathBuf,
    /// The package's folder, which is the working directory of the program.
    folder: PathBuf,
}

impl Program {
    pub(super) fn job(self) -> Job {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.folder);
        let name = self.name;
        Job { name, command }
    }
}

/// A program that runs in parallel with others, with a name for the output.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) command: Command,
}

/// Builds and returns the test programs of this `cargo test` command.
pub(super) fn build(command: &mut Command) -> Outcome<Vec<Program>> {
    let messages = output(
        command
            .args(["--no-run", "--message-format=json-render-diagnostics"])
            .stderr(Stdio::inherit()),
    )?;
    Ok(programs(&messages))
}

/// Runs jobs in this order, several at a time, and passes each line of their output to `read`.
/// `beside` starts at once, in addition to the usual number of jobs. The error names the jobs that
/// failed.
pub(super) fn run(jobs: Vec<Job>, beside: Option<Job>, mut read: impl FnMut(&str)) -> Outcome {
    let count = jobs.len() + usize::from(beside.is_some());
    let queue = Mutex::new(VecDeque::from(jobs));
    let mut failed = Vec::new();
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        let lane = |first: Option<Job>| {
            let (send, queue) = (send.clone(), &queue);
            let next = move || {
                queue
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .pop_front()
            };
            scope.spawn(move || {
                let alone = first.is_some();
                let mut job = first.or_else(&next);
                while let Some(Job { name, mut command }) = job {
                    // The output is printed at the end. Until then, this prints the names of
                    // programs that take long.
                    println!("running {name}");
                    let begin = Instant::now();
                    let done = command.stdin(Stdio::null()).output();
                    if send.send((name, done, begin.elapsed())).is_err() {
                        return;
                    }
                    job = if alone { None } else { next() };
                }
            });
        };
        if beside.is_some() {
            lane(beside);
        }
        for _ in 0..MAX_RUNNING {
            lane(None);
        }
        drop(send);
        for (number, (name, done, time)) in receive.iter().enumerate() {
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
                "reason": "compiler-artifact", "manifest_path": "/w/crates/program/cli/Cargo.toml",
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
            folder: "/w/crates/program/cli".into(),
        };
        assert_eq!(programs(&messages.join("\n")), [expected]);
    }

    #[test]
    fn output_is_read_and_failed_jobs_are_named() {
        let job = |name: &str, script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let name = name.to_owned();
            Job { name, command }
        };
        let jobs = vec![job("true", "echo ok"), job("false", "exit 3")];
        let mut lines = Vec::new();
        let done = run(jobs, Some(job("beside", "echo beside")), |line| {
            lines.push(line.to_owned());
        });
        lines.sort();
        assert_eq!(lines, ["beside", "ok"]);
        assert_eq!(
            done.unwrap_err(),
            "test programs failed:\n  false: exit status: 3"
        );
    }
}
