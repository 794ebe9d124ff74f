//! Log lines that the cluster no longer has when a follower requests them: the gap is
//! reported where it is, and at the end.

use std::{
    io::{BufRead as _, BufReader},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use serde_json::{Value, json};

use crate::{
    flaky_proxy::FlakyProxy,
    machine::{Answer, Machine, Running, eventually},
};

/// Prints more lines between two markers than the retained log files can hold.
const SCRIPT: &str = "\
until_there() { while test ! -e $1; do sleep 0.05; done; }
echo first
until_there $HERE/go
seq -f 'lost %0100.0f' 10000
touch $HERE/lost
until_there $HERE/end
echo last";

/// A running follower, and the lines that it has printed so far.
struct Follower {
    running: Running,
    lines: Arc<Mutex<Vec<String>>>,
    reading: JoinHandle<()>,
}

impl Follower {
    fn start(machine: &Machine, words: &[&str]) -> Self {
        let mut running = Running::start(machine.command(words));
        let out = BufReader::new(running.output());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let printed = lines.clone();
        let reading = std::thread::spawn(move || {
            for line in out.lines() {
                printed.lock().unwrap().push(line.unwrap());
            }
        });
        Self {
            running,
            lines,
            reading,
        }
    }

    #[track_caller]
    fn waits_for(&self, text: &str) {
        eventually(text, || {
            let lines = self.lines.lock().unwrap();
            lines.iter().any(|line| line.contains(text))
        });
    }

    fn end(self) -> (Vec<String>, Answer) {
        let answer = self.running.end().expect(0);
        self.reading.join().unwrap();
        let lines = self.lines.lock().unwrap().clone();
        (lines, answer)
    }
}

#[test]
fn a_gap_is_reported_in_place_and_at_the_end() {
    let machine = Machine::new();
    let up = [
        "up",
        "--container-log-max-size",
        "4Ki",
        "--container-log-max-files",
        "2",
        "--kubeconfig",
        "direct",
    ];
    machine.longshore(&up).expect(0);
    let proxy = FlakyProxy::around(&machine, "direct", "around");
    let here = format!("HERE={}", machine.code().display());
    let words = [
        "run",
        "-d",
        "--no-code",
        "--env",
        &here,
        "--",
        "sh",
        "-c",
        SCRIPT,
    ];
    let run = machine.longshore(&words).expect(0).out.trim().to_owned();
    let attach = |output: &str| {
        let words = ["attach", &run, "--kubeconfig", "around", "--output", output];
        let follower = Follower::start(&machine, &words);
        follower.waits_for("first");
        follower
    };
    let (text, json) = (attach("text"), attach("json"));
    // Refuses connections, so that the follower never reads the lines that are printed now.
    proxy.close(true);
    machine.write("go", "");
    let lost = machine.code().join("lost");
    eventually("the task has printed everything", || lost.exists());
    proxy.close(false);
    text.waits_for("may be missing");
    json.waits_for(r#""event":"gap""#);
    machine.write("end", "");

    let (lines, answer) = text.end();
    let is_gap = |line: &&String| line.contains("may be missing");
    assert_eq!(lines.iter().filter(is_gap).count(), 1, "{lines:?}");
    let gap = &lines[1];
    assert!(
        gap.starts_with("main/0 | longshore: lines between 20")
            && gap.ends_with(" may be missing: the log was rotated before they were read"),
        "{gap}"
    );
    assert_eq!(lines[0], "main/0 | first");
    assert!(lines[2].starts_with("main/0 | lost 0"), "{}", lines[2]);
    assert_eq!(lines.last().unwrap(), "main/0 | last");
    let summary = "warning: the logs have 1 gap, where lines may be missing (main/0: 1)";
    assert_eq!(answer.err.matches(summary).count(), 1, "{}", answer.err);

    let (lines, _) = json.end();
    let events: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let place = events.iter().position(|event| event["event"] == "gap");
    let (before, rest) = events.split_at(place.unwrap());
    let log = |event: &&Value| event["event"] == "log";
    let (last, first) = (before.iter().rfind(log), rest.iter().find(log));
    let (from, to) = (&last.unwrap()["time"], &first.unwrap()["time"]);
    let between = format!(
        "lines between {} and {}",
        from.as_str().unwrap(),
        to.as_str().unwrap()
    );
    assert_eq!(
        rest[0],
        json!({
            "event": "gap", "role": "main", "index": 0, "attempt": 1, "from": from, "to": to,
            "message": format!("{between} may be missing: the log was rotated before they were read"),
            "bytes": null, "cause": "rotated",
        })
    );
    assert_eq!(rest.last().unwrap()["gaps"], 1);
    assert_eq!(
        rest.iter().filter(|event| event["event"] == "gap").count(),
        1
    );
}
