//! The generations that `longshore resolve --watch` prints in a pod, checked as they
//! arrive.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{machine::Running, stage::Stage};

/// Much longer than the creation, the run and the end of a pod take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The generations that a pod prints, for pods with a selector in the role `worker`.
pub(crate) struct Watch {
    lines: Receiver<String>,
    number: u64,
    /// The pods that have joined and not left, by UID, with their names.
    pub(crate) members: BTreeMap<String, String>,
    pub(crate) joined: usize,
    pub(crate) left: usize,
    pub(crate) addresses: Vec<String>,
    _followed: Running,
}

impl Watch {
    pub(crate) fn start(stage: &Stage, selector: &str) -> Self {
        let script = format!("/longshore/bin/longshore resolve --watch --job 'worker={selector}'");
        let words = ["--name", "watch", "--service-account", "reader"];
        let command = ["--no-code", "--", "sh", "-c", &script];
        let mut followed = Running::start(stage.run_command(&[&words[..], &command].concat()));
        let output = BufReader::new(followed.output());
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                println!("{line}");
                let _ = send.send(line);
            }
        });
        Self {
            lines,
            number: 0,
            members: BTreeMap::new(),
            joined: 0,
            left: 0,
            addresses: Vec::new(),
            _followed: followed,
        }
    }

    /// Reads a generation, and checks that it follows from the one before.
    fn take(&mut self, line: &str) {
        let text = line.strip_prefix("main/0 | ").unwrap();
        let generation: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{line}"));
        self.number += 1;
        assert_eq!(generation["generation"], self.number, "{generation:#}");
        let pods = |of: &str| -> Vec<(String, String)> {
            let tasks = generation[of].as_array().unwrap().iter();
            let part = |task: &Value, name: &str| task["pod"][name].as_str().unwrap().to_owned();
            tasks
                .map(|task| (part(task, "uid"), part(task, "name")))
                .collect()
        };
        for (uid, name) in pods("left") {
            assert!(self.members.remove(&uid).is_some(), "{name} left twice");
            self.left += 1;
        }
        for (uid, name) in pods("joined") {
            assert!(self.members.insert(uid, name).is_none(), "joined twice");
            self.joined += 1;
        }
        // A list, or a map by index if indices are missing.
        let tasks: Vec<&Value> = match &generation["cluster"]["worker"] {
            Value::Object(tasks) => tasks.values().collect(),
            tasks => tasks.as_array().unwrap().iter().collect(),
        };
        let addresses = tasks
            .into_iter()
            .map(|task| task.as_str().unwrap().to_owned());
        self.addresses = addresses.collect();
        assert_eq!(self.addresses.len(), self.members.len(), "{generation:#}");
    }

    /// Reads until `holds` returns true.
    #[track_caller]
    pub(crate) fn until(&mut self, stage: &Stage, what: &str, holds: impl Fn(&Self) -> bool) {
        while self.number == 0 || !holds(self) {
            let line = self.lines.recv_timeout(TIMEOUT);
            let line = line.unwrap_or_else(|error| panic!("{what}: {error}\n{}", stage.describe()));
            self.take(&line);
        }
    }

    /// Reads until there are this many pods. Then nothing changes any more, and the pods
    /// are those that kubectl lists.
    #[track_caller]
    pub(crate) fn until_size(&mut self, stage: &Stage, size: usize, selector: &str) {
        self.until(stage, &format!("{size} pods"), |watch| {
            watch.members.len() == size
        });
        match self.lines.recv_timeout(Duration::from_secs(2)) {
            Err(RecvTimeoutError::Timeout) => {}
            line => panic!("expected no change after {size} pods, got {line:?}"),
        }
        let mut expected = addresses(stage, selector);
        let mut found = self.addresses.clone();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

/// The addresses of the pods that run and are not being deleted.
pub(crate) fn addresses(stage: &Stage, selector: &str) -> Vec<String> {
    let found = stage.kubectl(&["get", "pods", "--selector", selector, "--output", "json"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    let running = found["items"].as_array().unwrap().iter().filter(|pod| {
        pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
    });
    running
        .map(|pod| format!("{}:8470", pod["status"]["podIP"].as_str().unwrap()))
        .collect()
}
