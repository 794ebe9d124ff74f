//! Two contexts: this Kubernetes, and an embedded cluster of the user's machine.

use crate::{machine::Answer, rights::limited_user, stage::Stage};

/// A folder with the contexts `real` and `here`.
struct Folder(Stage);

impl Folder {
    fn new() -> Self {
        let stage = Stage::new();
        let here = stage.machine.home().join("here.kubeconfig");
        let up = ["up", "--kubeconfig", here.to_str().unwrap()];
        stage.machine.longshore(&up).expect(0);
        let folder = Self(stage);
        folder.configure(folder.0.kubeconfig().to_str().unwrap());
        folder
    }

    /// Writes `longshore.toml` with this kubeconfig of the context `real`.
    fn configure(&self, kubeconfig: &str) {
        let stage = &self.0;
        let text = format!(
            "name = 'job'\nlauncher_image = '{}'\n\
             [contexts.real]\nkubeconfig = '{kubeconfig}'\nnamespace = '{}'\n\
             [contexts.here]\nkubeconfig = '{}'\n",
            stage.facts("launcherImage"),
            stage.name,
            stage.machine.home().join("here.kubeconfig").display()
        );
        stage.machine.write("longshore.toml", &text);
    }

    fn longshore(&self, words: &[&str]) -> Answer {
        self.0.machine.longshore(words)
    }

    fn run(&self, words: &[&str]) -> Answer {
        self.longshore(&[&["run", "--context", "real,here"], words].concat())
    }

    /// The context and the state of each run, sorted.
    fn runs(&self) -> Vec<String> {
        let table = self.longshore(&["runs", "--all-contexts", "--output", "json"]);
        let table = table.expect(0).json();
        let mut runs: Vec<String> = table
            .as_array()
            .unwrap()
            .iter()
            .map(|run| format!("{} {}", run["context"], run["state"]).replace('"', ""))
            .collect();
        runs.sort();
        runs
    }

    /// More than half of the CPUs of the node, in thousandths.
    fn most_cpus(&self) -> String {
        let path = "-o=jsonpath={.items[0].status.allocatable.cpu}";
        let cpus = self.0.kubectl(&["get", "nodes", path]);
        let cpus: u32 = cpus.trim().parse().unwrap();
        format!("{}m", cpus * 600)
    }
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_run_goes_to_the_first_context_with_room() {
    let folder = Folder::new();
    let cpus = folder.most_cpus();
    let long = ["--cpu", &cpus, "--detach", "--", "sleep", "1000"];
    let first = folder.run(&long).expect(0);
    assert!(!first.err.contains("skipped"), "{}", first.err);
    let first = first.out.trim();
    let stage = &folder.0;
    stage.eventually("it runs", || folder.runs() == ["real running"]);

    let words = ["--cpu", &cpus, "--", "true"];
    let answer = folder.run(&words).expect(0);
    let reason = "context skipped real: main: it has no room now: a task requests ";
    assert!(answer.err.contains(reason), "{}", answer.err);
    assert_eq!(folder.runs(), ["here succeeded", "real running"]);
    // The scheduler agrees.
    let place = ["--context", "real"];
    let waits = folder.longshore(&[&["run"], &place[..], &long].concat());
    let waits = waits.expect(0).out.trim().to_owned();
    stage.eventually("the scheduler has no room, either", || {
        let why = ["why", &waits, "--output", "json"];
        let why = folder.longshore(&[&why[..], &place].concat()).json();
        why["explanation"]["kind"] == "insufficient-resource"
    });
    folder
        .longshore(&[&["rm", "--force", first, &waits][..], &place].concat())
        .expect(0);
    stage.eventually("the pods have ended", || {
        stage
            .kubectl(&["get", "pods", "--output", "name"])
            .is_empty()
    });
    let answer = folder.run(&["--cpu", &cpus, "--", "true"]).expect(0);
    assert!(!answer.err.contains("skipped"), "{}", answer.err);
    assert_eq!(folder.runs(), ["here succeeded", "real succeeded"]);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_run_that_fits_in_one_context_only_goes_there() {
    let folder = Folder::new();
    let claim = ["--volume", "claim:missing:/data", "--", "true"];
    let answer = folder.run(&claim).expect(4);
    for part in [
        "the run fits in none of 2 contexts",
        "real: the PersistentVolumeClaim \"missing\" is missing",
        "here: the PersistentVolumeClaim \"missing\" is missing",
    ] {
        assert!(answer.err.contains(part), "{}", answer.err);
    }
    // Only the node of the real cluster gets this label.
    let label = "longshore.dev/rack=7";
    let start = ["run", "--context", "here,real", "--node-selector", label];
    let words = [&start[..], &["--", "true"]].concat();
    let answer = folder.longshore(&words).expect(4);
    assert!(answer.err.contains(label), "{}", answer.err);
    let node = folder.0.kubectl(&["get", "nodes", "--output", "name"]);
    let set = |label: &str| folder.0.kubectl(&["label", node.trim(), label]);
    set(label);
    let answer = folder.longshore(&words);
    set("longshore.dev/rack-");
    let answer = answer.expect(0);
    let reason = "context skipped here: main: it fits on no node";
    assert!(answer.err.contains(reason), "{}", answer.err);
    assert_eq!(folder.runs(), ["real succeeded"]);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn room_that_a_user_may_not_see_is_not_counted() {
    let folder = Folder::new();
    let stage = &folder.0;
    let kubeconfig = limited_user(stage);
    let role = ["create", "rolebinding", "admin", "--clusterrole=admin"];
    let account = format!("--serviceaccount={}:limited", stage.name);
    stage.kubectl(&[&role[..], &[&account]].concat());
    folder.configure(kubeconfig.to_str().unwrap());
    let answer = folder.run(&["--cpu", "100m", "--", "true"]).expect(0);
    let note = "context real: cannot check whether it has room now: nodes: no permission";
    assert!(answer.err.contains(note), "{}", answer.err);
    assert_eq!(folder.runs(), ["real succeeded"]);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_context_that_does_not_answer_is_reported() {
    let folder = Folder::new();
    folder.run(&["--", "true"]).expect(0);
    let text = std::fs::read_to_string(folder.0.machine.code().join("longshore.toml")).unwrap();
    let text = text.replace(
        "[contexts.here]",
        "[contexts.gone]\nkubeconfig = 'none'\n[contexts.here]",
    );
    folder.0.machine.write("longshore.toml", &text);
    let answer = folder.longshore(&["runs", "--all-contexts"]).expect(0);
    assert!(answer.out.contains("\nreal "), "{}", answer.out);
    assert!(
        answer.err.contains("warning: context gone: "),
        "{}",
        answer.err
    );
    let words = ["run", "--context", "gone,here", "--", "echo", "hi"];
    let answer = folder.longshore(&words).expect(0);
    assert!(
        answer.err.contains("context skipped gone: "),
        "{}",
        answer.err
    );
}
