//! Runs in one of several contexts.

use std::path::PathBuf;

use crate::machine::{Answer, Machine, eventually};

/// Two clusters, `east` and `west`, and a folder that names both.
struct Clusters {
    east: Machine,
    west: Machine,
}

impl Clusters {
    fn new() -> Self {
        let (east, west) = (Machine::new(), Machine::new());
        let [near, far] = [start(&east), start(&west)];
        let text = format!(
            "name = 'job'\n[contexts.east]\nkubeconfig = '{}'\n[contexts.west]\nkubeconfig = '{}'\n",
            near.display(),
            far.display()
        );
        east.write("longshore.toml", &text);
        Self { east, west }
    }

    fn longshore(&self, words: &[&str]) -> Answer {
        self.east.longshore(words)
    }

    /// Runs the words in one of both contexts.
    fn run(&self, contexts: &str, words: &[&str]) -> Answer {
        self.longshore(&[&["run", "--context", contexts], words].concat())
    }

    /// The contexts and the states of all runs, in the order of the contexts.
    fn runs(&self) -> Vec<String> {
        let answer = self.longshore(&["runs", "--all-contexts", "--output", "json"]);
        let runs = answer.expect(0).json();
        let runs = runs.as_array().unwrap().iter();
        let text = |run: &serde_json::Value, key: &str| run[key].as_str().unwrap().to_owned();
        let mut lines: Vec<String> = runs
            .map(|run| format!("{} {}", text(run, "context"), text(run, "state")))
            .collect();
        lines.sort();
        lines
    }

    /// The CPUs of a node of `east`. Both clusters run on this machine.
    fn cpus(&self) -> String {
        let nodes = ["get", "nodes", "--context", "east", "--output", "json"];
        let nodes = self.longshore(&nodes).expect(0).json();
        let cpus = &nodes["items"][0]["status"]["allocatable"]["cpu"];
        cpus.as_str().unwrap().to_owned()
    }
}

/// Starts a cluster; returns its kubeconfig.
fn start(machine: &Machine) -> PathBuf {
    let path = machine.home().join("kubeconfig");
    let up = ["up", "--kubeconfig", path.to_str().unwrap()];
    machine.longshore(&up).expect(0);
    path
}

#[test]
fn a_run_goes_where_it_has_room_now() {
    let clusters = Clusters::new();
    let cpus = clusters.cpus();
    let all = ["--cpu", &cpus];
    let long = [&all[..], &["--detach", "--", "sleep", "1000"]].concat();
    let short = [&all[..], &["--", "true"]].concat();
    let busy = clusters.run("east,west", &long).expect(0);
    assert!(!busy.err.contains("skipped"), "{}", busy.err);
    let busy = busy.out.trim();
    eventually("it runs", || clusters.runs() == ["east running"]);

    let answer = clusters.run("east,west", &short).expect(0);
    let reason = format!("context skipped east: main: it has no room now: a task requests {cpus}");
    assert!(answer.err.contains(&reason), "{}", answer.err);
    assert_eq!(clusters.runs(), ["east running", "west succeeded"]);
    // A task that requests no CPU fits.
    let answer = clusters.run("east,west", &["--", "true"]).expect(0);
    assert!(!answer.err.contains("skipped"), "{}", answer.err);
    // A schedule does not start now.
    let cron = [&all[..], &["--cron", "0 0 1 1 *", "--", "true"]].concat();
    let answer = clusters.run("east,west", &cron).expect(0);
    assert!(!answer.err.contains("skipped"), "{}", answer.err);

    // If the run fits nowhere, the first context is selected.
    let other = clusters.run("west", &long).expect(0);
    eventually("both run", || {
        let runs = clusters.runs();
        runs.iter().filter(|run| run.ends_with(" running")).count() == 2
    });
    let waits = clusters.run("east,west", &long).expect(0);
    for part in [
        "context skipped east: main: it has no room now",
        "context skipped west: main: it has no room now",
        "context east: it may start later there",
    ] {
        assert!(waits.err.contains(part), "{}", waits.err);
    }
    let waits = waits.out.trim();
    let place = ["--context", "east"];
    // The scheduler reports it a moment after the pod was created.
    eventually("why names the missing CPUs", || {
        let why = clusters.longshore(&[&["why", waits], &place[..]].concat());
        why.out.contains("cpu")
    });
    // The run starts when the other one ends.
    clusters
        .longshore(&[&["cancel", busy], &place[..]].concat())
        .expect(0);
    eventually("the pending run starts", || {
        let why = ["why", waits, "--output", "json", "--context", "east"];
        clusters.longshore(&why).json()["state"] == "running"
    });
    let other = other.out.trim();
    for (run, context) in [(waits, "east"), (other, "west")] {
        clusters
            .longshore(&["rm", "--force", run, "--context", context])
            .expect(0);
    }
}

#[test]
fn all_tasks_must_have_room() {
    let clusters = Clusters::new();
    let cpus = clusters.cpus();
    let words = [
        "--cpu", &cpus, "--role", "worker=2", "--detach", "--", "sleep", "1000",
    ];
    let answer = clusters.run("east,west", &words).expect(0);
    let reason = "context skipped east: worker: 1 of its 2 tasks have room now";
    assert!(answer.err.contains(reason), "{}", answer.err);
    let remove = ["rm", "--force", answer.out.trim(), "--context", "east"];
    clusters.longshore(&remove).expect(0);
    // The pods use capacity until they have ended.
    let pods = ["get", "pods", "--context", "east", "--output", "name"];
    eventually("the pods are gone", || {
        clusters.longshore(&pods).expect(0).out.is_empty()
    });
    // The combinations of a sweep can run one after the other.
    let sweep = ["--cpu", &cpus, "--sweep", "n=1..2", "--", "echo", "{n}"];
    let answer = clusters.run("east,west", &sweep).expect(0);
    assert!(!answer.err.contains("skipped"), "{}", answer.err);
}

#[test]
fn the_namespace_of_a_context_is_that_of_all_commands() {
    let clusters = Clusters::new();
    let kubeconfig = |machine: &Machine| machine.home().join("kubeconfig").display().to_string();
    let (near, far) = (kubeconfig(&clusters.east), kubeconfig(&clusters.west));
    clusters.east.write(
        "namespace.yaml",
        "{apiVersion: v1, kind: Namespace, metadata: {name: team}}",
    );
    let create = ["create", "-f", "namespace.yaml", "--context", "east"];
    clusters.longshore(&create).expect(0);
    let own = format!(
        "name = 'job'\n[contexts.east]\nkubeconfig = '{near}'\nnamespace = 'team'\n\
         [contexts.west]\nkubeconfig = '{far}'\n[contexts.gone]\nkubeconfig = '{near}'\nnamespace = 'gone'\n"
    );
    let of_the_file = format!("namespace = 'team'\n[contexts.east]\nkubeconfig = '{near}'\n");
    for settings in [&of_the_file, &own] {
        clusters.east.write("longshore.toml", settings);
        let answer = clusters.run("east", &["--", "sh", "-c", "echo hello; exit 3"]);
        answer.expect(3);
        // Commands in this folder need no further options, but kubectl does.
        let why = clusters.longshore(&["why", "last", "--context", "east"]);
        assert!(why.out.contains(" --context east`"), "{}", why.out);
        assert!(!why.out.contains("--namespace"), "{}", why.out);
        let logs = clusters.longshore(&["logs", "last", "--context", "east"]);
        assert!(logs.expect(0).out.contains("hello"));
        let list = clusters.longshore(&["runs", "--context", "east", "--output", "json"]);
        let list = list.expect(0).json();
        assert_eq!(list[0]["namespace"], "team", "{list}");
        let pods = ["get", "pods", "--context", "east", "--output", "name"];
        assert!(!clusters.longshore(&pods).expect(0).out.is_empty());
        let ssh = clusters.longshore(&["ssh", "--config", "--context", "east"]);
        assert!(
            ssh.out.contains("--namespace team"),
            "{}\n{}",
            ssh.out,
            ssh.err
        );
        let everywhere = clusters.longshore(&["runs", "--all-contexts"]).expect(0);
        assert!(everywhere.out.contains("\neast "), "{}", everywhere.out);
    }
    let missing = ["--volume", "secret:keys:/keys", "--", "true"];
    let answer = clusters.run("east", &missing);
    let remedy = format!("`kubectl --kubeconfig {near} --namespace team create secret");
    assert!(answer.err.contains(&remedy), "{}", answer.err);
    // The namespace of a skipped context does not apply to the next one.
    let sweep = ["--sweep", "n=1..2", "--", "echo", "{n}"];
    let answer = clusters.run("gone,west", &sweep).expect(0);
    let skipped = "context skipped gone: the cluster has no namespace \"gone\"";
    assert!(answer.err.contains(skipped), "{}", answer.err);
    let (_, hints) = answer.err.split_once("cluster context west").unwrap();
    assert!(hints.contains(" --context west`"), "{hints}");
    assert!(!hints.contains("--namespace"), "{hints}");
}

#[test]
fn a_misspelt_context_is_reported_with_the_known_names() {
    let clusters = Clusters::new();
    let answer = clusters.longshore(&["runs", "--context", "esat"]);
    assert_ne!(answer.code, 0);
    let hint = "longshore.toml has no context \"esat\", but east, west";
    assert!(answer.err.contains(hint), "{}", answer.err);
}
