//! `longshore run --jobset` and `--queue` on clusters that support them.

mod controller;

use serde_json::{Value, json};

use crate::machine::{Machine, eventually};

const ROLES: &str = r#"
name = "team"
jobset = true
command = 'echo "$LONGSHORE_ROLE/$LONGSHORE_INDEX $LONGSHORE_CLUSTER"; exit ${CODE:-0}'
[roles.ps]
command = "sleep 300"
[roles.worker]
count = 2
"#;

/// A machine whose cluster has JobSet.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    define(&machine, &controller::definition());
    controller::start(machine.data().join("kubeconfig"));
    machine.write("longshore.toml", ROLES);
    machine
}

fn define(machine: &Machine, definition: &Value) {
    machine.write("crd.json", &definition.to_string());
    machine.longshore(&["create", "-f", "crd.json"]).expect(0);
    let name = definition["metadata"]["name"].as_str().unwrap();
    let established = || {
        let found = machine.longshore(&["get", "crd", name, "--output", "json"]);
        found.out.contains("\"Established\"")
    };
    eventually("the kind is served", established);
    std::fs::remove_file(machine.code().join("crd.json")).unwrap();
}

fn names(machine: &Machine, kind: &str) -> String {
    machine
        .longshore(&["get", kind, "--output", "name"])
        .expect(0)
        .out
}

#[test]
fn the_roles_form_one_jobset() {
    let machine = machine();
    let ran = machine.longshore(&["run"]).expect(0);
    let set = names(&machine, "jobsets");
    let run = set.trim().rsplit('/').next().unwrap();
    for index in 0..2 {
        let line = format!("worker/{index} | worker/{index} ");
        assert!(ran.out.contains(&line), "{}", ran.out);
    }
    assert!(
        ran.out.contains(&format!("{run}-worker-0-1.{run}:")),
        "{}",
        ran.out
    );
    // The serving role ended with the set, without any client.
    eventually("the service has ended", || {
        !names(&machine, "jobs").contains("-ps-")
    });
    let runs = machine
        .longshore(&["runs", "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(
        (&runs[0]["name"], &runs[0]["state"]),
        (&json!(run), &json!("succeeded"))
    );
    machine.longshore(&["rm", run]).expect(0);
    for kind in ["jobsets", "jobs", "pods", "secrets"] {
        eventually(kind, || names(&machine, kind).is_empty());
    }
}

#[test]
fn a_failure_ends_the_jobset_with_its_exit_code() {
    let machine = machine();
    let ran = machine.longshore(&["run", "--env", "CODE=7"]).expect(7);
    assert!(ran.err.contains("exit code 7"), "{}", ran.err);
    eventually("the service has ended", || {
        !names(&machine, "jobs").contains("-ps-")
    });
    let run = names(&machine, "jobsets");
    let run = run.trim().rsplit('/').next().unwrap();
    let why = machine
        .longshore(&["why", run, "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(
        (&why["state"], &why["exitCode"]),
        (&json!("failed"), &json!(7))
    );
}

#[test]
fn a_jobset_restarts_all_tasks() {
    let machine = machine();
    // The tasks also write their lines to a file, because a task may be stopped before it has
    // written anything.
    let written = machine.data().join("written");
    let script = "echo \"$LONGSHORE_INDEX in $LONGSHORE_ATTEMPT\"\n\
        echo \"$LONGSHORE_INDEX in $LONGSHORE_ATTEMPT\" >> $1\n\
        test $LONGSHORE_ATTEMPT != 3 || exit 0\n\
        test $LONGSHORE_INDEX = 0 || exit $((6 + LONGSHORE_ATTEMPT))\n\
        exec sleep 600\n";
    // A restart deletes the pods at once, possibly before the creation of the run is answered.
    machine.write("fail.sh", script);
    let written_to = written.display().to_string();
    let words = [
        "run",
        "--retries",
        "2",
        "--restart",
        "run",
        "--",
        "sh",
        "fail.sh",
        &written_to,
    ];
    let ran = machine.longshore(&words).expect(0);
    let written = std::fs::read_to_string(&written).unwrap();
    for index in 0..2 {
        // The restart deletes the pods of the attempts before, possibly before their logs were
        // read: then this is reported.
        let gap = format!("worker/{index} | longshore: attempt ");
        let gaps = ran.out.matches(&gap).count();
        let mut missing = 0;
        for attempt in 1..=3 {
            let line = format!("{index} in {attempt}\n");
            let printed = ran.out.matches(&format!("worker/{index} | {line}")).count();
            let expected = written.matches(&line).count();
            assert!(printed <= 1, "{}", ran.out);
            missing += expected.saturating_sub(printed);
        }
        assert!(missing <= gaps, "{}\n{}\n{written}", ran.out, ran.err);
        let last = format!("worker/{index} | {index} in 3\n");
        assert!(ran.out.contains(&last), "{}", ran.out);
    }
    for (code, attempt) in [(7, 1), (8, 2)] {
        let note = format!(
            "worker/1: its command ended with exit code {code}; attempt {attempt} of 3, restarting all tasks"
        );
        assert!(ran.err.contains(&note), "{}", ran.err);
    }
    let runs = machine.longshore(&["runs", "--output", "json"]).json();
    assert_eq!(
        (&runs[0]["state"], &runs[0]["restarts"]),
        (&json!("succeeded"), &json!(2))
    );
    // The last failure ends the run.
    let words = [
        "run",
        "--retries",
        "1",
        "--restart",
        "run",
        "--",
        "sh",
        "fail.sh",
        &written_to,
    ];
    let ran = machine.longshore(&words).expect(8);
    assert!(
        ran.err.contains("exit code 7; attempt 1 of 2"),
        "{}",
        ran.err
    );
}

#[test]
fn a_cancelled_jobset_stays_cancelled() {
    let machine = machine();
    let run = machine
        .longshore(&["run", "--detach", "--", "sleep", "300"])
        .expect(0);
    let run = run.out.trim();
    eventually("it runs", || {
        machine
            .longshore(&["runs"])
            .expect(0)
            .out
            .contains("running")
    });
    machine.longshore(&["cancel", run]).expect(0);
    let states = || {
        machine
            .longshore(&["runs", "--output", "json"])
            .expect(0)
            .json()
    };
    assert_eq!(states()[0]["state"], "cancelled");
    let pods = machine
        .longshore(&["get", "pods", "--output", "json"])
        .expect(0)
        .json();
    let phases = pods["items"].as_array().unwrap().iter();
    assert!(
        !phases
            .into_iter()
            .any(|pod| pod["status"]["phase"] == "Running"),
        "{pods}"
    );
}

#[test]
fn missing_jobset_and_queues_are_reported_before_submission() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let refused = machine
        .longshore(&["run", "--jobset", "--", "true"])
        .expect(4);
    let expected = "the cluster has no JobSets (jobset.x-k8s.io/v1alpha2)";
    assert!(refused.err.contains(expected), "{}", refused.err);
    let queued = ["run", "--queue", "team-a", "--", "true"];
    let refused = machine.longshore(&queued).expect(4);
    let expected = "Kueue is not installed, so there is no queue \"team-a\"";
    assert!(refused.err.contains(expected), "{}", refused.err);
    assert_eq!(names(&machine, "secrets"), "");

    let mut queues = controller::definition();
    queues["metadata"]["name"] = json!("localqueues.kueue.x-k8s.io");
    queues["spec"]["group"] = json!("kueue.x-k8s.io");
    queues["spec"]["names"] =
        json!({"kind": "LocalQueue", "plural": "localqueues", "singular": "localqueue"});
    queues["spec"]["versions"][0]["name"] = json!("v1beta1");
    define(&machine, &queues);
    let refused = machine.longshore(&queued).expect(4);
    let expected = "there is no queue \"team-a\" in the namespace \"default\"";
    assert!(refused.err.contains(expected), "{}", refused.err);
    assert_eq!(names(&machine, "jobs"), "");
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue",
        "metadata": {"name": "team-a"}, "spec": {"clusterQueue": "all"},
    });
    machine.write("queue.json", &queue.to_string());
    machine.longshore(&["create", "-f", "queue.json"]).expect(0);
    let run = machine.longshore(&["run", "--queue", "team-a", "--detach", "--", "true"]);
    let run = run.expect(0).out;
    let held = machine
        .longshore(&["get", "jobs", "--output", "json"])
        .expect(0)
        .json();
    assert_eq!(held["items"][0]["spec"]["suspend"], true, "{run}");
}
