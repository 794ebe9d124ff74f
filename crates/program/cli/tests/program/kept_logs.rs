//! The logs of runs that have ended: the Job deletes pods, and the embedded cluster keeps their
//! logs until the run is removed. Other clusters do not, and `logs` reports this.

use std::{fs, path::PathBuf};

use longshore_embedded::{EmbeddedCluster, Options};

use crate::{
    machine::{Answer, Machine, eventually, signal},
    page::Page,
};

/// The first worker fails after the others have written a line; the others run on.
const FAILING: &str = r#"
command = 'echo "rank $RANK begins"; test "$RANK" = 1 && sleep 1 && exit 7; sleep 300'
[roles.worker]
count = 3
"#;

/// The task `main` succeeds, and ends the service.
const SERVICE: &str = r#"
[roles.main]
command = 'sleep 1; echo trained'
[roles.metrics]
command = 'echo serving; exec sleep 300'
service = true
"#;

/// Starts a detached run of the code folder; returns its name.
fn start(machine: &Machine, words: &[&str]) -> String {
    let words = [&["run", "-d"], words].concat();
    machine.longshore(&words).expect(0).out.trim().to_owned()
}

fn says(machine: &Machine, run: &str, text: &str) {
    eventually("the run prints something", || {
        machine.longshore(&["logs", run]).out.contains(text)
    });
}

/// Waits until the pods of a run that its Job deletes are gone; `left` of them remain.
fn wait_for_pods(machine: &Machine, run: &str, left: usize) {
    let selector = format!("longshore.dev/run={run}");
    eventually("the Job deletes the pods", || {
        let words = ["get", "pods", "-l", &selector, "--output", "name"];
        machine.longshore(&words).expect(0).out.lines().count() == left
    });
}

#[track_caller]
fn assert_lines(answer: &Answer, lines: &[&str]) {
    for line in lines {
        assert!(
            answer.out.contains(line),
            "{line}: {} {}",
            answer.out,
            answer.err
        );
    }
}

/// Returns the pods whose logs the node has.
fn kept(machine: &Machine) -> Vec<PathBuf> {
    let folders = fs::read_dir(machine.data().join("node/logs")).unwrap();
    folders.map(|folder| folder.unwrap().path()).collect()
}

#[test]
fn the_logs_of_ended_runs_are_read_until_the_runs_are_removed() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("longshore.toml", FAILING);
    let failed = start(&machine, &[]);
    machine.write("longshore.toml", SERVICE);
    let served = start(&machine, &[]);
    machine.write("longshore.toml", "");
    let script = "echo epoch 1; trap 'echo interrupted; exit 3' TERM; sleep 300 & wait";
    let command = ["--", "sh", "-c", script];
    let late = start(&machine, &[&["--timeout", "3s"][..], &command].concat());
    let cancelled = start(&machine, &command);
    says(&machine, &cancelled, "epoch 1");
    machine.longshore(&["cancel", &cancelled]).expect(0);
    for (run, left) in [(&failed, 1), (&served, 1), (&late, 0), (&cancelled, 0)] {
        wait_for_pods(&machine, run, left);
    }
    let check = || {
        let logs = |run: &str| machine.longshore(&["logs", run]).expect(0);
        let ranks = [0, 1, 2].map(|rank| format!("worker/{rank} | rank {rank} begins"));
        assert_lines(&logs(&failed), &ranks.each_ref().map(String::as_str));
        let service = ["main/0    | trained", "metrics/0 | serving"];
        assert_lines(&logs(&served), &service);
        // The logs include lines that a task writes after SIGTERM.
        for run in [&late, &cancelled] {
            let ended = ["main/0 | epoch 1\n", "main/0 | interrupted\n"];
            assert_lines(&logs(run), &ended);
            let attached = machine.longshore(&["attach", run]);
            assert_lines(&attached, &ended);
            assert!(!attached.err.contains("gap"), "{}", attached.err);
        }
        let last = machine
            .longshore(&["logs", &cancelled, "--tail", "1"])
            .expect(0);
        assert_eq!(last.out, "main/0 | interrupted\n");
        let task = machine.longshore(&["logs", &format!("{failed}/worker/2")]);
        assert_eq!(task.expect(0).out, "worker/2 | rank 2 begins\n");
    };
    check();
    let page = Page::start(machine.command(&["ui"]));
    let (_, lines) = page.get(&format!("runs/default/{cancelled}/logs"));
    assert!(lines.contains("epoch 1"), "{lines}");
    drop(page);

    machine.longshore(&["down", "--force"]).expect(0);
    machine.longshore(&["up"]).expect(0);
    check();
    signal(machine.pid().unwrap(), "KILL");
    eventually("the cluster is gone", || machine.pid().is_none());
    machine.longshore(&["up"]).expect(0);
    check();

    // A run of the same name has its own logs.
    let before = kept(&machine).len();
    machine.longshore(&["rm", &failed]).expect(0);
    eventually("logs are removed with their run", || {
        kept(&machine).len() == before - 3
    });
    machine
        .longshore(&["rm", &served, &late, &cancelled])
        .expect(0);
    eventually("all logs are removed", || kept(&machine).is_empty());
}

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: backup}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: OnFailure
      containers:
      - {name: dump, image: any, command: [sh, -c, 'echo the reason; exit 1']}
";

/// The Job deletes its pod, because the container would be restarted otherwise.
#[test]
fn the_log_of_a_deleted_pod_is_found_by_its_name() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let second =
        "      - {name: proxy, image: any, command: [sh, -c, 'echo of the proxy; sleep 300']}\n";
    machine.write("one.yaml", JOB);
    let two = JOB.replace("backup", "pair") + second;
    machine.write("two.yaml", &two);
    machine
        .longshore(&["apply", "-f", "one.yaml", "-f", "two.yaml"])
        .expect(0);
    let of = |job: &str| {
        let folders = kept(&machine).into_iter();
        let records = folders.filter_map(|folder| fs::read(folder.join("pod.json")).ok());
        let records =
            records.filter_map(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
        let mut names = records.filter(|pod| !pod["deleted"].is_null());
        let found = names.find(|pod| pod["metadata"]["ownerReferences"][0]["name"] == job);
        found.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
    };
    for job in ["backup", "pair"] {
        eventually("the pod is deleted", || of(job).is_some());
    }
    let pods = ["get", "pods", "--output", "name"];
    assert_eq!(machine.longshore(&pods).expect(0).out, "");

    let one = of("backup").unwrap();
    for name in [&format!("pod/{one}"), &one] {
        let log = machine.longshore(&["logs", name]).expect(0);
        assert_eq!(log.out, "the reason\n");
        assert!(log.err.contains("was deleted"), "{}", log.err);
    }
    let pair = format!("pod/{}", of("pair").unwrap());
    let which = machine.longshore(&["logs", &pair]).expect(2);
    assert!(
        which.err.contains("--container: dump, proxy"),
        "{}",
        which.err
    );
    let all = machine
        .longshore(&["logs", &pair, "--all-containers"])
        .expect(0);
    assert_eq!(all.out, "dump | the reason\nproxy | of the proxy\n");
    let last = ["logs", &pair, "-c", "proxy", "--tail", "1", "--follow"];
    assert_eq!(machine.longshore(&last).expect(0).out, "of the proxy\n");
    let none = machine
        .longshore(&["logs", &pair, "-c", "missing"])
        .expect(1);
    assert!(none.err.contains("dump, proxy"), "{}", none.err);
    let other = machine.longshore(&["logs", "pod/missing"]).expect(1);
    assert!(other.err.contains("no pod"), "{}", other.err);
}

#[test]
fn the_logs_of_a_run_are_removed_with_its_job_and_with_its_namespace() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let manifest = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n";
    machine.write("namespace.yaml", manifest);
    machine
        .longshore(&["apply", "-f", "namespace.yaml"])
        .expect(0);
    let command = ["--", "sh", "-c", "echo epoch 1; exec sleep 300"];
    let short = start(
        &machine,
        &[&["--timeout", "2s", "--ttl", "3s"][..], &command].concat(),
    );
    let team = start(
        &machine,
        &[&["--namespace", "team", "--timeout", "2s"][..], &command].concat(),
    );
    eventually("the deadline is reached", || {
        let logs = machine.longshore(&["logs", &team, "--namespace", "team"]);
        let pods = machine.longshore(&["get", "pods", "-A", "--output", "name"]);
        logs.out.contains("epoch 1") && pods.out.is_empty()
    });
    assert!(!kept(&machine).is_empty());
    eventually("the ttl has ended", || {
        machine.longshore(&["logs", &short]).code == 1 && kept(&machine).len() == 1
    });
    machine
        .longshore(&["delete", "namespace", "team"])
        .expect(0);
    eventually("the namespace is removed", || kept(&machine).is_empty());
}

/// A cluster that keeps no logs of deleted pods, as Kubernetes.
#[test]
fn missing_logs_are_named_where_the_cluster_keeps_none() {
    let machine = Machine::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let kubeconfig = machine.home().join("kubeconfig");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_longshore"));
    let options = Options {
        listen: Some(([127, 0, 0, 1], 0).into()),
        kubeconfig: Some(kubeconfig.clone()),
        keep_logs: false,
        program_dir: program.parent().map(PathBuf::from),
        ..Options::default()
    };
    let embedded = runtime.block_on(EmbeddedCluster::start(options)).unwrap();
    let at = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let longshore = |words: &[&str]| machine.longshore(&[words, &at].concat());

    machine.write("longshore.toml", FAILING);
    let run = longshore(&["run", "-d", "--image", "any"]).expect(0).out;
    let run = run.trim();
    eventually("the Job deletes the other pods", || {
        let pods = longshore(&["get", "pods", "--output", "name"]);
        longshore(&["runs"]).out.contains("failed") && pods.out.lines().count() == 1
    });
    let logs = longshore(&["logs", run]).expect(1);
    assert!(
        logs.out.contains("worker/1 | rank 1 begins"),
        "{}",
        logs.out
    );
    for task in ["worker/0", "worker/2"] {
        let gone = format!("the log of {task} is gone: its pod was deleted");
        assert!(logs.err.contains(&gone), "{}", logs.err);
    }
    assert!(!logs.err.contains("worker/1"), "{}", logs.err);
    let attached = longshore(&["attach", run]).expect(7);
    for task in ["worker/0", "worker/2"] {
        let gap =
            format!("{task} | longshore: attempt 1: lines may be missing: the pod was deleted");
        assert!(attached.out.contains(&gap), "{}", attached.out);
    }
    longshore(&["logs", &format!("{run}/worker/1")]).expect(0);
    longshore(&["logs", &format!("{run}/worker/2")]).expect(1);
    runtime.block_on(embedded.stop());
}
