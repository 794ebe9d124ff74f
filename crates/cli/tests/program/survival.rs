//! What a followed run survives: the machine's end, the cluster's, a pod's; and
//! logs that are rotated meanwhile.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::Command,
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use serde_json::Value;

use crate::cutter::Cutter;
use crate::machine::{Machine, Running, eventually, signal};

/// Prints numbered lines with the pod's name until it is told how to end.
const COUNT: &str = r#"i=0
while ! test -e "$END"; do echo "$POD_NAME $i"; i=$((i+1)); sleep 0.02; done
exit "$(cat "$END")"
"#;

/// Small files of logs, of which none is removed.
const UP: [&str; 5] = [
    "up",
    "--container-log-max-size",
    "4Ki",
    "--container-log-max-files",
    "1000",
];

/// What a program that follows a run has said so far.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Value>>>);

/// The numbers that each pod printed, as they came, by task and pod.
type Numbers = BTreeMap<(String, String), Vec<u64>>;

impl Told {
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

    /// Waits until a pod of the task beside those known has printed some
    /// lines; gives its name.
    #[track_caller]
    fn newer(&self, task: &str, known: &[String]) -> String {
        let mut found = None;
        eventually(&format!("{task} prints, and is none of {known:?}"), || {
            let new = self.numbers().into_iter().find(|((of, pod), numbers)| {
                of == task && !known.contains(pod) && numbers.len() > 20
            });
            found = new.map(|((_, pod), _)| pod);
            found.is_some()
        });
        found.unwrap()
    }
}

/// A program that follows a run.
struct Follower {
    running: Running,
    told: Told,
    reading: JoinHandle<()>,
}

impl Follower {
    fn start(machine: &Machine, arguments: &[&str]) -> Self {
        let arguments = [arguments, &["--output", "json"]].concat();
        let mut running = Running::start(machine.command(&arguments));
        let out = BufReader::new(running.output());
        let told = Told::default();
        let events = told.clone();
        let reading = std::thread::spawn(move || {
            for line in out.lines() {
                let event = serde_json::from_str(&line.unwrap()).unwrap();
                events.0.lock().unwrap().push(event);
            }
        });
        Self {
            running,
            told,
            reading,
        }
    }

    /// Waits for the end; gives the event that tells it, which tells the
    /// program's exit code.
    fn end(self) -> (Value, Numbers) {
        let answer = self.running.end();
        self.reading.join().unwrap();
        let last = self.told.all("finished").pop().unwrap_or_default();
        assert_eq!(last["exitCode"], answer.code, "{last}\n{}", answer.err);
        (last, self.told.numbers())
    }
}

/// Fails the test if a line was lost or doubled, or came too early: of each pod
/// all that the API has, and of those it knows no more the first lines.
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

/// Two runs at once, of which one ends well and the other fails, go through
/// it all one after the other.
#[test]
fn a_run_survives_client_cluster_and_pod() {
    let machine = Machine::new();
    machine.longshore(&UP).expect(0);
    roles(&machine, "well", "well.end", 5);
    // The cluster's end is each task's first failure, the deleted pod the second.
    roles(&machine, "badly", "badly.end", 2);

    // The machine's process is killed, and another takes its place.
    let start = |folder| {
        let first = Follower::start(&machine, &["run", folder]);
        first.told.newer("third/0", &[]);
        let run = first.told.all("started")[0]["run"]
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
        .map(|one| tasks.map(|task| one.told.newer(task, &[])).to_vec());

    // The cluster dies, the pods with it, and is started again.
    signal(machine.pid().unwrap(), "KILL");
    eventually("the killed cluster counts as stopped", || {
        machine.pid().is_none()
    });
    machine.longshore(&UP).expect(0);
    for (one, known) in followers.iter().zip(&mut known) {
        for task in tasks {
            let new = one.told.newer(task, known);
            known.push(new);
        }
    }

    // A pod of each run is deleted, and replaced by its Job.
    for (one, known) in followers.iter().zip(&mut known) {
        let pod = known[3].clone();
        machine.longshore(&["delete", "pod", &pod]).expect(0);
        let new = one.told.newer("first/0", known);
        known.push(new);
    }

    for (name, code) in [("well.end", "0"), ("badly.end", "7")] {
        // At once: the tasks read it as soon as it is there.
        machine.write("end.new", code);
        std::fs::rename(machine.code().join("end.new"), machine.code().join(name)).unwrap();
    }
    for (one, code) in followers.into_iter().zip([0, 7]) {
        let (last, numbers) = one.end();
        assert_eq!(last["exitCode"], code, "{last}");
        assert_eq!(numbers.len(), 7, "{numbers:?}");
        assert_whole(&machine, &numbers);
    }
    // Who comes later is told the same end.
    machine.longshore(&["attach", &names[0]]).expect(0);
    machine.longshore(&["attach", &names[1]]).expect(7);
}

/// One task has ended when the cluster dies, the other starts again, and does not wait in
/// vain for its peer.
#[test]
fn a_task_that_starts_again_needs_no_peer_that_has_ended() {
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
    eventually("the killed cluster counts as stopped", || {
        machine.pid().is_none()
    });
    machine.write("pair.end", "");
    machine.longshore(&["up"]).expect(0);
    let (last, _) = follower.end();
    assert_eq!(last["exitCode"], 0, "{last}");
}

/// The server cannot be reached now and then, and each time connections break;
/// what runs, goes on. The logs go over many files meanwhile.
#[test]
fn chatty_tasks_lose_no_line_when_logs_are_rotated_and_connections_break() {
    const TASKS: u64 = 10;
    const LINES: u64 = 3000;
    let machine = Machine::new();
    let up = [&UP[..], &["--kubeconfig", "direct"]].concat();
    machine.longshore(&up).expect(0);
    let cutter = Cutter::around(&machine, "direct", "around");

    let script = format!(
        "i=0; while test $i -lt {LINES}; do
            echo \"$POD_NAME $i\"; i=$((i+1)); test $((i % 50)) != 0 || sleep 0.08
        done"
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
    eventually("the run is found", || {
        !follower.told.all("started").is_empty()
    });
    let mut cuts = 0;
    for round in 0..20 {
        std::thread::sleep(Duration::from_millis(150));
        cuts += cutter.cut();
        cutter.close(round % 8 >= 4);
    }
    // Nobody answers when the run ends, and for a while after it.
    cutter.close(true);
    eventually("the tasks have ended", || {
        let shown = machine.longshore(&["runs", "--output", "json"]).json();
        shown[0]["state"] == "succeeded"
    });
    eventually("it is told", || {
        let waits = follower.told.all("waiting");
        waits.iter().any(|why| why["kind"] == "cluster-away")
    });
    cutter.close(false);
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

/// The task writes as fast as it can, many times what its log may keep, and who reads
/// the program's output takes nothing at first.
#[test]
fn a_task_that_writes_faster_than_it_is_read_loses_no_line() {
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
