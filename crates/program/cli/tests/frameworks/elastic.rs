//! torchrun's elastic mode, with the files of docs/restarts.md.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use crate::{
    install::environment,
    machine::{Machine, Running},
    page::write_files,
};

/// torchrun notices lost nodes, and waits for further nodes, for several seconds; each start of the
/// workers imports PyTorch.
const TIMEOUT: Duration = Duration::from_secs(240);

/// A run of four tasks in progress.
struct Elastic {
    machine: Machine,
    running: Running,
    lines: Receiver<String>,
    /// The lines of the log so far.
    seen: Vec<String>,
    steps: u32,
}

impl Elastic {
    /// Starts a training, and waits until all workers take part.
    fn start(steps: u32) -> Self {
        let machine = Machine::new();
        write_files(&machine, "restarts.md", "elastic");
        let mut path = environment("pytorch").join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut command = machine.command(&["run", "elastic", "--env", &format!("STEPS={steps}")]);
        command.env("PATH", path);
        let mut running = Running::start(command);
        let output = BufReader::new(running.output());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut run = Self {
            machine,
            running,
            lines,
            seen: Vec::new(),
            steps,
        };
        run.wait_for("with 4 workers");
        run
    }

    /// Waits for a line that contains a text, after those that were seen.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let begin = Instant::now();
        loop {
            let left = TIMEOUT.saturating_sub(begin.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("never: {text}\n{}", self.seen.join("\n"));
            };
            let is_found = line.contains(text);
            self.seen.push(line);
            if is_found {
                return;
            }
        }
    }

    /// The name of the first object of a kind that contains a text.
    fn name(&self, kind: &str, text: &str) -> String {
        let all = self.machine.longshore(&["get", kind, "--output", "name"]);
        let all = all.expect(0).out;
        let found = all.lines().find(|name| name.contains(text)).unwrap();
        found.rsplit('/').next().unwrap().to_owned()
    }

    /// Deletes the pod of a task.
    fn delete(&self, task: &str) {
        let name = self.name("pods", task);
        let deleted = self.machine.longshore(&["delete", "pod", &name]);
        deleted.expect(0);
    }

    /// Sets whether pods can be scheduled.
    fn cordon(&self, unschedulable: bool) {
        let name = self.name("nodes", "");
        let node = format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n\
             spec: {{unschedulable: {unschedulable}}}\n"
        );
        self.machine.write("node.yaml", &node);
        let applied = self.machine.longshore(&["apply", "-f", "node.yaml"]);
        applied.expect(0);
    }

    /// Waits for the end of the run, which has done each step and lost no step. Returns the log.
    #[track_caller]
    fn succeeds(mut self) -> Vec<String> {
        self.wait_for(&format!("step {} with", self.steps));
        let answer = self.running.end().expect(0);
        let log = self.seen.join("\n");
        let steps = self.seen.iter().filter_map(|line| {
            let (_, rest) = line.split_once("| step ")?;
            rest.split_once(" with ")?.0.parse().ok()
        });
        let steps: BTreeSet<u32> = steps.collect();
        let expected: BTreeSet<u32> = (1..=self.steps).collect();
        assert_eq!(steps, expected, "{log}\n{}", answer.err);
        self.seen
    }
}

/// The steps at which workers of this number began, in order.
fn beginnings(log: &[String], workers: u32) -> Vec<u32> {
    let with = format!("rank 0 of {workers} begins at step ");
    let found = log.iter().filter_map(|line| line.split_once(&with));
    found.map(|(_, step)| step.parse().unwrap()).collect()
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn torchrun_goes_on_without_a_lost_task_which_joins_again() {
    let mut run = Elastic::start(100);
    // The new pod stays unscheduled until the others continue.
    run.cordon(true);
    run.delete("-worker-2-");
    run.wait_for("with 3 workers");
    run.cordon(false);
    run.wait_for("with 4 workers");
    let log = run.succeeds();
    assert!(beginnings(&log, 3)[0] > 0, "{log:#?}");
    let all = beginnings(&log, 4);
    assert!(all.len() > 1 && all[0] == 0 && all[1] > 0, "{log:#?}");
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn torchrun_starts_again_after_the_loss_of_the_first_task() {
    let run = Elastic::start(15);
    run.delete("-worker-0-");
    let log = run.succeeds();
    // All tasks were retried, and have read the checkpoint.
    let last = log.iter().rev().find(|line| line.contains("rank 0 of "));
    assert!(!last.unwrap().ends_with("at step 0"), "{log:#?}");
}
