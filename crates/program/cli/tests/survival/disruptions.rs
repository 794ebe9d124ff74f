//! A follower survives the end of its process, of the cluster and of a pod, and rotated
//! logs.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::Command,
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use serde_json::Value;

use crate::flaky_proxy::FlakyProxy;
use crate::machine::{Machine, Running, eventually, signal};

/// Prints numbered lines with the pod's name until a file contains the exit code.
const COUNT: &str = r#"i=0
while ! test -e "$END"; do echo "$POD_NAME $i"; i=$((i+1)); sleep 0.1; done
exit "$(cat "$END")"
"#;

/// Small log files, which are all kept.
const UP: [&str; 5] = [
    "up",
    "--container-log-max-size",
    "4Ki",
    "--container-log-max-files",
    "1000",
];

/// The events that a follower has printed so far.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Value>>>);

/// The numbers that each pod printed, in order of arrival, by task and pod.
type Numbers = BTreeMap<(String, String), Vec<u64>>;

impl Events {
    fn all(&self, kind: &str) -> Vec<Value> {
        let events = self.0.lock().unwrap();
        let of_kind = events.iter().filter(|event| event["event"] == kind);
        of_kind.cloned().collect()
    }

    fn numbers(&self) -> Numbers {
        let mut numbers = Numbers::new();
        for event in self.all("log") {
            let line = event["line"].as_str().unwrap();
            let (pod, number) = line.split_once(' ').unwrap();
            let task = format!("{}/{}", event["role"].as_str().unwrap(), event["index"]);
            let of_pod = numbers.entry((task, pod.to_owned())).or_default();
            of_pod.push(number.parse().unwrap());
        }
        numbers
    }

    /// Waits until a pod of the task, other than the known ones, has printed some lines;
    /// returns its name.
    #[track_caller]
    fn newer(&self, task: &str, known: &[String]) -> String {
        let mut found = None;
        eventually(
            &format!("a new pod of {task} prints, other than {known:?}"),
            || {
                let new = self.numbers().into_iter().find(|((of, pod), numbers)| {
                    of == task && !known.contains(pod) && numbers.len() > 5
                });
                found = new.map(|((_, pod), _)| pod);
                found.is_some()
            },
        );
        found.unwrap()
    }
}

/// A program that follows a run.
struct Follower {
    running: Running,
    events: Events,
    reading: JoinHandle<()>,
}

impl Follower {
    fn start(machine: &Machine, arguments: &[&str]) -> Self {
        let arguments = [arguments, &["--output", "json"]].concat();
        let mut running = Running::start(machine.command(&arguments));
        let out = BufReader::new(running.output());
        let events = Events::default();
        let collected = events.clone();
        let reading = std::thread::spawn(move || {
            for line in out.lines() {
                let event = serde_json::from_str(&line.unwrap()).unwrap();
                collected.0.lock().unwrap().push(event);
            }
        });
        Self {
            running,
            events,
            reading,
        }
    }

    /// Waits for the end; returns the final event, whose exit code is the program's.
    fn end(self) -> (Value, Numbers) {
        let answer = self.running.end();
        self.reading.join().unwrap();
        let last = self.events.all("finished").pop().unwrap_or_default();
        assert_eq!(last["exitCode"], answer.code, "{last}\n{}", answer.err);
        (last, self.events.numbers())
    }
}

/// Fails the test if a line was lost, doubled or out of order: for each pod, all lines that
/// the API has, or the first lines of a pod that no longer exists.
#[track_caller]
fn assert_whole(machine: &Machine, numbers: &Numbers) {
    for ((task, pod), numbers) in numbers {
        let expected: Vec<u64> = (0..numbers.len() as u64).collect();
        assert_eq!(numbers, &expected, "{task} of {pod}");
        let log = machine.longshore(&["logs", &format!("pod/{pod}")]);
        if log.code == 0 {
            assert_eq!(log.out.lines().count(), numbers.len(), "{task} of {pod}");
        }
    }
}

fn roles(machine: &Machine, folder: &str, end: &str, retries: u32) {
    let end = machine.code().join(end).display().to_string();
    let mut text = format!("retries = {retries}\n[env]\nEND = {end:?}\n");
    for role in ["first", "second", "third"] {
        text += &format!("[roles.{role}]\ncommand = [\"sh\", \"count.sh\"]\n");
    }
    std::fs::create_dir(machine.code().join(folder)).unwrap();
    machine.write(&format!("{folder}/count.sh"), COUNT);
    machine.write(&format!("{folder}/longshore.toml"), &text);
}

/// Two runs at once go through every disruption in turn. One run succeeds and the other fails.
#[test]
fn a_run_survives_the_end_of_its_client_its_cluster_and_a_pod() {
    let machine = Machine::new();
    machine.longshore(&UP).expect(0);
    roles(&machine, "well", "well.end", 5);
    // The first task fails when its pod is deleted. The end of the cluster does not count.
    roles(&machine, "badly", "badly.end", 1);

    // The client's process is killed, and another one replaces it.
    let start = |folder| {
        let first = Follower::start(&machine, &["run", folder]);
        first.events.newer("third/0", &[]);
        let run = first.events.all("started")[0]["run"]
            .as_str()
            .unwrap()
            .to_owned();
        first.running.signal("KILL");
        run
    };
    let names = [start("well"), start("badly")];
    let followers = names
        .each_ref()
        .map(|run| Follower::start(&machine, &["attach", run]));
    let tasks = ["first/0", "second/0", "third/0"];
    let mut known: [Vec<String>; 2] = followers
        .each_ref()
        .map(|one| tasks.map(|task| one.events.newer(task, &[])).to_vec());

    // The cluster dies with its pods, and is started again.
    signal(machine.pid().unwrap(), "KILL");
    eventually("status reports the killed cluster as stopped", || {
        machine.pid().is_none()
    });
    machine.longshore(&UP).expect(0);
    for (one, known) in followers.iter().zip(&mut known) {
        for task in tasks {
            let new = one.events.newer(task, known);
            known.push(new);
        }
    }

    // A pod of each run is deleted, and its Job replaces it.
    for (one, known) in followers.iter().zip(&mut known) {
        let pod = known[3].clone();
        machine.longshore(&["delete", "pod", &pod]).expect(0);
        let new = one.events.newer("first/0", known);
        known.push(new);
    }

    for (name, code) in [("well.end", "0"), ("badly.end", "7")] {
        // Renamed into place, since the tasks read it as soon as it exists.
        machine.write("end.new", code);
        std::fs::rename(machine.code().join("end.new"), machine.code().join(name)).unwrap();
    }
    for (one, code) in followers.into_iter().zip([0, 7]) {
        let (last, numbers) = one.end();
        assert_eq!(last["exitCode"], code, "{last}");
        assert_eq!(numbers.len(), 7, "{numbers:?}");
        assert_whole(&machine, &numbers);
    }
    // A later client reports the same result.
    machine.longshore(&["attach", &names[0]]).expect(0);
    machine.longshore(&["attach", &names[1]]).expect(7);
}

/// A task has ended when the cluster dies. The other task restarts, and does not wait for its peer
/// in vain.
#[test]
fn a_restarted_task_does_not_wait_for_a_finished_peer() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let end = machine.code().join("pair.end").display().to_string();
    let script = r#"test "$LONGSHORE_INDEX" = 0 || until test -e "$END"; do sleep 0.02; done"#;
    let text = format!(
        "retries = 1\n[env]\nEND = {end:?}\n[roles.main]\ncount = 2\ncommand = [\"sh\", \"task.sh\"]\n"
    );
    std::fs::create_dir(machine.code().join("pair")).unwrap();
    machine.write("pair/task.sh", script);
    machine.write("pair/longshore.toml", &text);
    let follower = Follower::start(&machine, &["run", "pair"]);
    eventually("one task has ended, and the other runs", || {
        let pods = machine.longshore(&["get", "pods", "-o", "json"]);
        let pods: Value = serde_json::from_str(&pods.out).unwrap_or_default();
        let phases = pods["items"].as_array().into_iter().flatten();
        let mut phases: Vec<_> = phases.map(|pod| pod["status"]["phase"].clone()).collect();
        phases.sort_by_key(Value::to_string);
        phases == ["Running", "Succeeded"]
    });
    signal(machine.pid().unwrap(), "KILL");
    eventually("status reports the killed cluster as stopped", || {
        machine.pid().is_none()
    });
    machine.write("pair.end", "");
    machine.longshore(&["up"]).expect(0);
    let (last, _) = follower.end();
    assert_eq!(last["exitCode"], 0, "{last}");
}

/// The server is unreachable several times, and each time connections break; the tasks keep
/// running. Meanwhile the logs are rotated many times.
#[test]
fn chatty_tasks_lose_no_line_when_logs_are_rotated_and_connections_break() {
    const TASKS: u64 = 10;
    const LINES: u64 = 3000;
    let machine = Machine::new();
    let up = [&UP[..], &["--kubeconfig", "direct"]].concat();
    machine.longshore(&up).expect(0);
    let proxy = FlakyProxy::around(&machine, "direct", "around");

    // The last lines wait until the server is unreachable.
    let end = machine.code().join("job.end");
    let waits = format!("until test -e '{}'; do sleep 0.05; done", end.display());
    let script = format!(
        "i=0; while test $i -lt {LINES}; do
            test $i != {held} || {waits}
            echo \"$POD_NAME $i\"; i=$((i+1)); test $((i % 50)) != 0 || sleep 0.08
        done",
        held = LINES - 50,
    );
    let count = format!("main={TASKS}");
    std::fs::create_dir(machine.code().join("job")).unwrap();
    let words = [
        "run", "job", "--detach", "--role", &count, "--", "sh", "-c", &script,
    ];
    let detached = machine.longshore(&words);
    let run = detached.expect(0).out.trim().to_owned();
    let attach = [
        "attach",
        &run,
        "--kubeconfig",
        "around",
        "--context",
        "longshore",
    ];
    let follower = Follower::start(&machine, &attach);
    eventually("the follower has found the run", || {
        !follower.events.all("started").is_empty()
    });
    let mut cuts = 0;
    for round in 0..20 {
        std::thread::sleep(Duration::from_millis(150));
        cuts += proxy.cut();
        proxy.close(round % 8 >= 4);
    }
    // The server is unreachable when the run ends, and for a while after that.
    proxy.close(true);
    machine.write("job.end", "");
    eventually("the tasks have ended", || {
        let shown = machine.longshore(&["runs", "--output", "json"]).json();
        shown[0]["state"] == "succeeded"
    });
    eventually(
        "the follower reports that the cluster is unreachable",
        || {
            let waits = follower.events.all("waiting");
            waits.iter().any(|why| why["kind"] == "cluster-away")
        },
    );
    proxy.close(false);
    let (last, numbers) = follower.end();
    assert_eq!(last["exitCode"], 0, "{last}");
    assert!(cuts > 15, "{cuts} connections were cut");
    assert_eq!(numbers.len() as u64, TASKS);
    for ((task, _), numbers) in &numbers {
        assert!(numbers.iter().copied().eq(0..LINES), "{task}: {numbers:?}");
    }
    assert_whole(&machine, &numbers);
    let logs = machine.data().join("node/logs");
    let mut find = Command::new("find");
    let found = find.arg(logs).args(["-name", "0.*.log"]).output().unwrap();
    let files = String::from_utf8_lossy(&found.stdout).lines().count() as u64;
    assert!(files > TASKS * 10, "{files} files");
}

/// The task writes as fast as it can, many times what its log may keep, and the reader of
/// the program's output reads nothing at first.
#[test]
fn a_task_that_writes_faster_than_the_reader_loses_no_line() {
    const LINES: usize = 300_000;
    let machine = Machine::new();
    let small = [
        "up",
        "--container-log-max-size",
        "256Ki",
        "--container-log-max-files",
        "2",
    ];
    machine.longshore(&small).expect(0);
    let count = LINES.to_string();
    let words = ["run", "--", "seq", "-f", "%0100.0f", &count];
    let mut running = Running::start(machine.command(&words));
    let out = BufReader::new(running.output());
    std::thread::sleep(Duration::from_secs(2));
    let mut number = 0;
    for line in out.lines() {
        number += 1;
        assert_eq!(line.unwrap(), format!("main/0 | {number:0100}"));
    }
    let answer = running.end().expect(0);
    assert_eq!(number, LINES, "{}", answer.err);
    assert!(!answer.err.contains("gap"), "{}", answer.err);
}
