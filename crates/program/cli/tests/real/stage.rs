//! A namespace of the real cluster, and a working folder.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::machine::{Answer, Machine};

/// More than anything takes on a busy machine, such as an image pull or a grace period.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The facts about the cluster that `cargo xtask` reports.
struct Facts(Value);

impl Facts {
    fn read() -> Self {
        let text = std::env::var("LONGSHORE_TEST_REAL").expect("cargo xtask test --cluster real");
        Self(serde_json::from_str(&text).unwrap())
    }

    fn get(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap()
    }
}

pub(crate) struct Stage {
    pub(crate) machine: Machine,
    facts: Facts,
    /// The namespace.
    pub(crate) name: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::labelled(&[])
    }

    /// With labels on the namespace, as in `a=b`.
    pub(crate) fn labelled(labels: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let stage = Self {
            machine: Machine::new(),
            facts: Facts::read(),
            name: format!("stage-{}-{number}", std::process::id()),
        };
        stage.kubectl(&["create", "namespace", &stage.name]);
        if !labels.is_empty() {
            stage.kubectl(&[&["label", "namespace", &stage.name], labels].concat());
        }
        stage.eventually("the service account exists", || {
            stage
                .ask(&["get", "serviceaccount", "default"])
                .is_some_and(|_| true)
        });
        stage
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.facts.get("kubeconfig").into()
    }

    /// An image that the open registry has, and one that needs a password.
    pub(crate) fn images(&self) -> [&str; 2] {
        ["image", "privateImage"].map(|name| self.facts.get(name))
    }

    /// A fact about the cluster.
    pub(crate) fn facts(&self, name: &str) -> &str {
        self.facts.get(name)
    }

    /// The address at which pods reach this machine.
    pub(crate) fn machine(&self) -> &str {
        self.facts.get("machine")
    }

    /// The folder of the cluster's own files.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        PathBuf::from(self.facts.get("state")).join(name)
    }

    /// The folder of the cluster's programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        PathBuf::from(self.facts.get("programs")).join(name)
    }

    fn kubectl_command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.program("kubectl"));
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .args(["--namespace", &self.name])
            .args(words)
            .env("HOME", self.machine.home())
            .stdin(Stdio::null());
        command
    }

    /// The output of kubectl, which must succeed.
    #[track_caller]
    pub(crate) fn kubectl(&self, words: &[&str]) -> String {
        let answer = Answer::new(&self.kubectl_command(words).output().unwrap());
        answer.expect(0).out
    }

    /// The output of kubectl, if it succeeds.
    pub(crate) fn ask(&self, words: &[&str]) -> Option<String> {
        let answer = Answer::new(&self.kubectl_command(words).output().unwrap());
        (answer.code == 0).then_some(answer.out)
    }

    /// Applies manifests.
    #[track_caller]
    pub(crate) fn apply(&self, object: &Value) {
        self.machine.write("object.json", &object.to_string());
        let path = self.machine.code().join("object.json");
        self.kubectl(&["apply", "--filename", path.to_str().unwrap()]);
        std::fs::remove_file(path).unwrap();
    }

    /// The program, with the cluster and the namespace.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = self.machine.command(words);
        command
            .env("KUBECONFIG", self.kubeconfig())
            .env("LONGSHORE_NAMESPACE", &self.name);
        command
    }

    pub(crate) fn longshore<S: AsRef<OsStr>>(&self, words: &[S]) -> Answer {
        Answer::new(&self.command(words).output().unwrap())
    }

    /// `longshore run` with the launcher's image and these arguments.
    pub(crate) fn run_command(&self, words: &[&str]) -> Command {
        let start = ["run", "--context", "real", "--namespace", &self.name];
        let image = ["--launcher-image", self.facts.get("launcherImage")];
        self.command(&[&start[..], &image, words].concat())
    }

    pub(crate) fn run(&self, words: &[&str]) -> Answer {
        Answer::new(&self.run_command(words).output().unwrap())
    }

    /// Starts a run and detaches; returns its name.
    #[track_caller]
    pub(crate) fn detach(&self, words: &[&str]) -> String {
        let answer = self.run(&[&["--detach"], words].concat()).expect(0);
        answer.out.trim().to_owned()
    }

    /// A subcommand for a run in the test's namespace.
    pub(crate) fn about(&self, words: &[&str]) -> Answer {
        let place = ["--context", "real", "--namespace", &self.name];
        self.longshore(&[words, &place].concat())
    }

    pub(crate) fn why(&self, run: &str) -> Value {
        let answer = self.about(&["why", run, "--output", "json"]);
        assert!(answer.code <= 1, "{}", answer.err);
        answer.json()
    }

    /// Waits until the cause has this kind.
    #[track_caller]
    pub(crate) fn eventually_why(&self, run: &str, kind: &str) -> Value {
        let begin = Instant::now();
        loop {
            let why = self.why(run);
            if why["explanation"]["kind"] == kind {
                return why;
            }
            assert!(
                begin.elapsed() < TIMEOUT,
                "not {kind}: {why:#}\n{}",
                self.describe()
            );
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Waits until the run has failed, before or after it started.
    #[track_caller]
    pub(crate) fn eventually_failed(&self, run: &str) {
        self.eventually("the run has failed", || {
            let state = &self.why(run)["state"];
            state == "failed" || state == "not-started"
        });
    }

    /// The description by kubectl of the namespace's pods and Jobs, with events.
    pub(crate) fn describe(&self) -> String {
        let names = self.ask(&["get", "pods,jobs", "--output", "name"]);
        let names = names.unwrap_or_default();
        // Each name alone: kubectl describes several objects without their events.
        let described = names
            .lines()
            .filter_map(|name| self.ask(&["describe", name]));
        described.collect()
    }

    #[track_caller]
    pub(crate) fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(
                begin.elapsed() < TIMEOUT,
                "never: {what}\n{}",
                self.describe()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The phase of the namespace's only pod.
    pub(crate) fn phase(&self) -> String {
        let path = "-o=jsonpath={.items[*].status.phase}";
        self.ask(&["get", "pods", path]).unwrap_or_default()
    }
}

/// The output of the only task of a run.
pub(crate) fn said(answer: &Answer) -> String {
    let lines = answer.out.lines();
    let lines = lines.map(|line| line.strip_prefix("main/0 | ").unwrap_or(line));
    lines.map(|line| format!("{line}\n")).collect()
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.ask(&["delete", "namespace", &self.name, "--wait=false"]);
    }
}
