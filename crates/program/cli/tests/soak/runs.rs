//! Runs of random shape, whose followers are killed at random. Each run must end with the
//! right exit code and complete logs.

use std::{
    collections::BTreeMap,
    fs,
    process::{Child, Output, Stdio},
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use rand::{RngExt, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::Value;

use crate::{Stage, machine};

/// Maximum duration of a run, with all restarts of its cluster.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);

/// Prints numbered lines after the pod's name, then exits with the given code. Arguments: the
/// marker, the number of lines, the seconds to wait in the middle, the exit code, and a flag for
/// leaving a process behind in its own session.
const TASK: &str = r#"
test "$5" = 0 || setsid sh -c ': "$0"; sleep 1000' "$1" &
awk -v n="$2" -v pod="$POD_NAME" 'BEGIN {
    big = sprintf("%5000s", "x")
    for (i = 0; i < n; i++) {
        rest = i % 97 == 3 ? "\r50%\r100%" : i % 89 == 5 ? "\033[2J\033]0;title\a" : i % 83 == 7 ? big : "plain text"
        print pod, i, rest
    }
}'
sleep "$3"
printf '%s %s' "$POD_NAME" "$2"
exit "$4"
"#;

struct Shape {
    name: String,
    tasks: u32,
    lines: u64,
    seconds: f64,
    code: i32,
    /// The number of restarts of a failed task.
    retries: u32,
    leave_process: bool,
}

impl Shape {
    fn random(stage: &Stage, rng: &mut StdRng) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let fails = rng.random_bool(0.3);
        Self {
            name: format!("s{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            tasks: rng.random_range(1..4),
            lines: *[0, 1, 50, 3_000, 30_000].choose(rng).unwrap(),
            seconds: rng.random_range(0.0..3.0),
            code: if fails { rng.random_range(1..=125) } else { 0 },
            retries: if fails {
                0
            } else if stage.killed {
                100
            } else {
                20
            },
            leave_process: rng.random_bool(0.2),
        }
    }

    fn arguments(&self, stage: &Stage) -> Vec<String> {
        let words = [
            "run",
            "--output",
            "json",
            "--name",
            &self.name,
            "--role",
            &format!("main={}", self.tasks),
            "--retries",
            &self.retries.to_string(),
            "--",
            "sh",
            "-c",
            TASK,
            "task",
            &stage.marker,
            &self.lines.to_string(),
            &format!("{:.2}", self.seconds),
            &self.code.to_string(),
            if self.leave_process { "1" } else { "0" },
        ];
        words.map(str::to_owned).to_vec()
    }
}

/// Returns true if a word is the full name of a pod of the run.
fn is_of(word: &str, shape: &Shape) -> bool {
    // Name, suffix of the run, role, index, suffix of the pod.
    word.starts_with(&format!("{}-", shape.name)) && word.split('-').count() == 5
}

/// Returns true if a line is a prefix of a line of the run, cut off before its number.
fn is_beginning(line: &str, shape: &Shape) -> bool {
    let name = format!("{}-", shape.name);
    name.starts_with(line) || line.starts_with(&name) && !line.trim_end().contains(' ')
}

/// Launches runs until the stage ends.
pub(crate) fn act(stage: &Stage, mut rng: StdRng) {
    while !stage.is_over() {
        let shape = Shape::random(stage, &mut rng);
        if let Err(problem) = launch(stage, &shape, &mut rng) {
            stage.tally.fail(format!(
                "run {} ({} tasks, {} lines, exit code {}, cluster {}): {problem}",
                shape.name,
                shape.tasks,
                shape.lines,
                shape.code,
                if stage.killed { "killed" } else { "lasting" },
            ));
        }
    }
}

fn launch(stage: &Stage, shape: &Shape, rng: &mut StdRng) -> Result<(), String> {
    let mut follower = follow(stage, &shape.arguments(stage));
    let begin = Instant::now();
    let mut output = loop {
        if rng.random_bool(0.5) {
            break output_of(stage, shape, follower);
        }
        // The follower ends, the run stays.
        let moment = Duration::from_millis(rng.random_range(20..2_000));
        if let Some(output) = wait(&mut follower, moment) {
            break output;
        }
        let signal = *["KILL", "HUP", "TERM"].choose(rng).unwrap();
        machine::signal(follower.id().try_into().unwrap(), signal);
        let output = follower.wait_with_output().unwrap();
        if !started(&output) {
            stage
                .tally
                .count("followers killed before the run was created");
            remove(stage, shape);
            return Ok(());
        }
        stage.tally.count("followers killed");
        follower = follow(stage, &attach(stage, shape, begin)?);
    };
    if !started(&output) && output.status.code() == Some(3) {
        // A fault or the end of the cluster hit the requests of the submission.
        stage.tally.count(match stage.killed {
            true => "runs that were not started because their cluster was killed",
            false => "runs that an injected fault refused",
        });
        remove(stage, shape);
        return Ok(());
    }
    // A follower may give up on a killed cluster: attach again.
    while finished(&output).is_none() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if text.contains("panicked") || begin.elapsed() > RUN_TIMEOUT {
            return Err(format!("no end was reported: {text}"));
        }
        if !stage.killed {
            return Err(format!("the follower ended without a result: {text}"));
        }
        stage.tally.count("followers that lost the killed cluster");
        thread::sleep(Duration::from_millis(200));
        if !started(&output) && list(stage, shape).is_none() {
            return Ok(());
        }
        let attach = attach(stage, shape, begin)?;
        output = output_of(stage, shape, follow(stage, &attach));
    }
    check(stage, shape, &output)?;
    remove(stage, shape);
    Ok(())
}

/// The output of a follower until it ends. A run that takes too long is examined, fails the
/// test, and is removed.
fn output_of(stage: &Stage, shape: &Shape, follower: Child) -> Output {
    thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        scope.spawn(move || {
            if end.recv_timeout(RUN_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
                let found = examine(stage, shape);
                stage.tally.fail(format!(
                    "run {} ({} tasks, {} lines, {} s, leaves a process: {}) takes too long:\n{found}",
                    shape.name, shape.tasks, shape.lines, shape.seconds, shape.leave_process
                ));
                remove(stage, shape);
            }
        });
        let output = follower.wait_with_output().unwrap();
        drop(ended);
        output
    })
}

/// The state of a run's pods and processes.
fn examine(stage: &Stage, shape: &Shape) -> String {
    let mut found = String::new();
    for arguments in [
        &["runs"][..],
        &["why", &shape.name],
        &["logs", &shape.name],
        &["get", "pods", "-o", "json"],
        &["get", "jobs", "-o", "json"],
        &["get", "events", "-o", "json"],
    ] {
        let answer = stage.machine.longshore(arguments);
        found += &format!("--- {arguments:?}\n{}{}\n", answer.out, answer.err);
    }
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| fs::read(process.path().join(name)).unwrap_or_default();
        let text = |name| String::from_utf8_lossy(&read(name)).replace('\0', " ");
        if text("environ").contains(&format!("POD_NAME={}-", shape.name)) {
            let (command, state) = (text("cmdline"), text("status"));
            found += &format!("--- {command}\n{state}{}\n", text("stack"));
        }
    }
    found
}

/// The arguments that follow the run again.
fn attach(stage: &Stage, shape: &Shape, begin: Instant) -> Result<Vec<String>, String> {
    loop {
        if let Some(run) = list(stage, shape) {
            return Ok(["attach", &run, "--output", "json"]
                .map(str::to_owned)
                .to_vec());
        }
        if begin.elapsed() > RUN_TIMEOUT {
            return Err("the run is not listed".into());
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// The run's full name, if the cluster responds and has it.
fn list(stage: &Stage, shape: &Shape) -> Option<String> {
    let answer = stage.machine.longshore(&["runs", "--output", "json"]);
    let runs: Value = serde_json::from_str(&answer.out).ok()?;
    let prefix = format!("{}-", shape.name);
    let names = runs
        .as_array()?
        .iter()
        .filter_map(|run| run["name"].as_str());
    names
        .into_iter()
        .find(|name| name.starts_with(&prefix))
        .map(str::to_owned)
}

fn remove(stage: &Stage, shape: &Shape) {
    if let Some(run) = list(stage, shape) {
        stage.machine.longshore(&["rm", "--force", &run]);
    }
}

fn follow(stage: &Stage, arguments: &[String]) -> Child {
    let mut command = stage.machine.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Reads the follower's output for a while; returns it if the follower ends in that time.
fn wait(follower: &mut Child, moment: Duration) -> Option<Output> {
    let begin = Instant::now();
    // Only small outputs fit the pipe; a follower that is blocked on it is killed like any
    // other.
    while begin.elapsed() < moment {
        if follower.try_wait().unwrap().is_some() {
            let mut output = Output {
                status: follower.wait().unwrap(),
                stdout: Vec::new(),
                stderr: Vec::new(),
            };
            use std::io::Read as _;
            follower
                .stdout
                .take()
                .unwrap()
                .read_to_end(&mut output.stdout)
                .unwrap();
            follower
                .stderr
                .take()
                .unwrap()
                .read_to_end(&mut output.stderr)
                .unwrap();
            return Some(output);
        }
        thread::sleep(Duration::from_millis(10));
    }
    None
}

fn events(output: &Output) -> impl Iterator<Item = Value> + '_ {
    output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
}

fn started(output: &Output) -> bool {
    events(output).any(|event| event["event"] == "started")
}

fn finished(output: &Output) -> Option<Value> {
    events(output).find(|event| event["event"] == "finished")
}

fn check(stage: &Stage, shape: &Shape, output: &Output) -> Result<(), String> {
    let last = finished(output).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("panicked") {
        return Err(format!("a panic: {errors}"));
    }
    let code = output.status.code().unwrap_or(-1);
    // A task that fails for good with its cluster was ended by SIGKILL: its command, or the
    // process that fetches the code.
    let cause = last["explanation"]["cause"].as_str().unwrap_or_default();
    let before = code == 4 && cause.contains("the node agent ended");
    let lost = stage.killed && shape.code != 0 && (code == 137 || before);
    if last["exitCode"] != code || (code != shape.code && !lost) {
        return Err(format!("exit code {code}: {last}\n{errors}"));
    }
    check_logs(stage, shape, output, lost)?;
    stage.tally.count(if lost {
        "runs lost with their cluster, as expected"
    } else {
        "runs ended as expected"
    });
    Ok(())
}

/// Checks that each pod has its lines from the first one on, without a gap, and that each task that
/// ended by itself has all lines. A task that is killed, with its cluster or because another task
/// of its run failed, may end anywhere, even in the middle of a line.
fn check_logs(stage: &Stage, shape: &Shape, output: &Output, lost: bool) -> Result<(), String> {
    let may_be_cut = stage.killed || shape.code != 0;
    let mut pods: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events(output).filter(|event| event["event"] == "log") {
        let line = event["line"].as_str().unwrap_or_default();
        match line.split_once(' ') {
            Some((pod, rest)) if is_of(pod, shape) => {
                let number = rest.split(' ').next().unwrap_or_default();
                pods.entry(pod.to_owned()).or_default().push(number.into());
            }
            // Cut off before the number.
            _ if may_be_cut && is_beginning(line, shape) => {}
            _ => return Err(format!("an unexpected line: {line:?}")),
        }
    }
    for (pod, numbers) in &mut pods {
        let count = numbers.len();
        for (place, number) in numbers.iter().enumerate() {
            let expected = place.to_string();
            let is_cut = may_be_cut && place + 1 == count && expected.starts_with(number);
            if *number != expected && !is_cut {
                return Err(format!(
                    "{pod}: line {number:?} where {expected} was expected"
                ));
            }
        }
        // A cut-off number is not a complete line.
        if numbers
            .last()
            .is_some_and(|last| *last != (count - 1).to_string())
        {
            numbers.pop();
        }
    }
    // The last line has the number of lines and no newline.
    let whole = pods
        .values()
        .filter(|numbers| numbers.len() as u64 == shape.lines + 1);
    let whole = whole.count();
    // The first failure ends a run; its other tasks may be stopped early.
    let expected = if lost {
        0
    } else if shape.code != 0 {
        1
    } else {
        shape.tasks as usize
    };
    if whole < expected {
        let counts: Vec<_> = pods
            .iter()
            .map(|(pod, numbers)| (pod, numbers.len()))
            .collect();
        return Err(format!("{whole} of {expected} complete logs: {counts:?}"));
    }
    Ok(())
}
