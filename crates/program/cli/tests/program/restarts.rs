//! Retries, restarts of the whole run, disruptions, time limits and checkpoints.

use std::{io::Read as _, io::Write as _, net::TcpStream, time::Duration};

use longshore::client::{Cluster, DeleteOptions};
use serde_json::{Value, json};

use crate::machine::{Answer, Machine, Running, eventually};

/// Waits until the file `end` exists, after the line `NAME ATTEMPT`.
const WAIT: &str = "echo \"$LONGSHORE_ROLE/$LONGSHORE_INDEX $LONGSHORE_ATTEMPT\" >> $1/log\n\
     until test -e $1/end; do sleep 0.05; done\n";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("wait.sh", WAIT);
    machine.write("log", "");
    machine.longshore(&["up"]).expect(0);
    machine
}

fn start(machine: &Machine, options: &[&str]) -> Running {
    let folder = machine.code().display().to_string();
    let mut words = vec!["run"];
    words.extend(options);
    words.extend(["--", "sh", "wait.sh", folder.as_str()]);
    Running::start(machine.command(&words))
}

/// The sorted lines of the tasks.
fn lines(machine: &Machine) -> Vec<String> {
    let text = std::fs::read_to_string(machine.code().join("log")).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn wait_for_lines(machine: &Machine, expected: &[&str]) {
    eventually(&format!("the lines are {expected:?}"), || {
        lines(machine) == expected
    });
}

/// The running pod of a task.
fn pod(machine: &Machine, role: &str, index: u32) -> Value {
    let label = format!("longshore.dev/role={role}");
    let words = ["get", "pods", "-l", &label, "--output", "json"];
    let pods = machine.longshore(&words).expect(0).json();
    let pods = pods["items"].as_array().unwrap().iter();
    let index = index.to_string();
    let mut running = pods.filter(|pod| {
        let annotations = &pod["metadata"]["annotations"];
        annotations["batch.kubernetes.io/job-completion-index"] == *index
            && pod["status"]["phase"] == "Running"
    });
    running.next().unwrap().clone()
}

fn name(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().unwrap().to_owned()
}

/// Evicts a pod like `kubectl drain`.
fn evict(machine: &Machine, pod: &str) {
    let path = machine.data().join("kubeconfig");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = Cluster::from_kubeconfig(Some(&path), None).await.unwrap();
        let pods = cluster.pods().in_namespace("default").unwrap();
        pods.evict(pod, &DeleteOptions::default()).await.unwrap();
    });
}

fn why(machine: &Machine) -> Value {
    let words = ["why", "last", "--output", "json"];
    machine.longshore(&words).json()
}

fn end(machine: &Machine, running: Running) -> Answer {
    machine.write("end", "");
    running.end()
}

#[test]
fn evicted_pods_do_not_count_as_failures() {
    let machine = machine();
    let running = start(&machine, &["--retries", "1"]);
    for attempt in 1..=3 {
        let expected: Vec<String> = (1..=attempt).map(|n| format!("main/0 {n}")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        wait_for_lines(&machine, &expected);
        if attempt < 3 {
            evict(&machine, &name(&pod(&machine, "main", 0)));
        }
    }
    // Evicted pods are deleted.
    let found = why(&machine);
    let summary = found["summary"].as_str().unwrap();
    assert!(summary.contains("restarted 2 times"), "{summary}");
    assert_eq!(found["restarts"], 2);
    let answer = end(&machine, running).expect(0);
    let noted = "main/0: its pod was evicted through the API, as by a drain of its node";
    assert!(answer.err.contains(noted), "{}", answer.err);
    let noted = "does not count as a failure, restarting";
    assert_eq!(answer.err.matches(noted).count(), 2, "{}", answer.err);
}

#[test]
fn without_retries_a_disruption_ends_the_run() {
    let machine = machine();
    let running = start(&machine, &[]);
    wait_for_lines(&machine, &["main/0 1"]);
    evict(&machine, &name(&pod(&machine, "main", 0)));
    let answer = running.end();
    assert!(answer.code != 0 && answer.err.contains("evicted through the API"));
    assert_eq!(lines(&machine), ["main/0 1"]);
}

/// The first task coordinates the others: its loss is the worst case.
#[test]
fn a_run_restarts_after_the_loss_of_its_first_task_and_then_of_another() {
    let machine = machine();
    let options = ["--retries", "1", "--restart", "run", "--role", "w=2"];
    let running = start(&machine, &options);
    wait_for_lines(&machine, &["w/0 1", "w/1 1"]);
    let other = name(&pod(&machine, "w", 1));
    evict(&machine, &name(&pod(&machine, "w", 0)));
    wait_for_lines(&machine, &["w/0 1", "w/0 2", "w/1 1", "w/1 2"]);
    // The other task has kept its pod.
    assert_eq!(name(&pod(&machine, "w", 1)), other);
    let log = machine.longshore(&["logs", &format!("pod/{other}")]);
    let log = log.expect(0).out;
    assert!(
        log.contains("longshore: restarting all tasks: ") && log.contains("attempt 2 begins"),
        "{log}"
    );
    evict(&machine, &other);
    let all = ["w/0 1", "w/0 2", "w/0 3", "w/1 1", "w/1 2", "w/1 3"];
    wait_for_lines(&machine, &all);
    end(&machine, running).expect(0);
    assert_eq!(lines(&machine), all);
}

/// All commands fail when one does, as in distributed training.
#[test]
fn failures_that_follow_from_the_first_do_not_count() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let script = "echo \"$LONGSHORE_INDEX in $LONGSHORE_ATTEMPT\"\n\
        test $LONGSHORE_ATTEMPT = 3 && exit 0\n\
        test $LONGSHORE_INDEX = $((LONGSHORE_ATTEMPT - 1)) && sleep 0.5 && exit 9\n\
        trap 'exit 1' TERM; sleep 600 & wait\n";
    machine.write("fail.sh", script);
    let options = ["--retries", "2", "--restart", "run", "--role", "w=4"];
    let words = [&["run"][..], &options, &["--", "sh", "fail.sh"]].concat();
    let answer = machine.longshore(&words).expect(0);
    for attempt in 1..=3 {
        for index in 0..4 {
            let line = format!("w/{index} | {index} in {attempt}");
            assert_eq!(answer.out.matches(&line).count(), 1, "{}", answer.out);
        }
    }
    for (index, attempt) in [(0, 1), (1, 2)] {
        let note = format!(
            "w/{index}: its command ended with exit code 9; attempt {attempt} of 3, restarting all tasks"
        );
        assert!(answer.err.contains(&note), "{}", answer.err);
    }
    let runs = machine.longshore(&["runs", "--output", "json"]).json();
    assert_eq!(runs[0]["restarts"], 2);
}

#[test]
fn a_run_that_fails_too_often_ends_with_the_exit_code_and_its_restarts() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let script = "test $LONGSHORE_INDEX = 1 && exit $((10 + LONGSHORE_ATTEMPT)); exec sleep 600";
    machine.write("fail.sh", script);
    let options = ["--retries", "1", "--restart", "run", "--role", "w=2"];
    let words = [&["run"][..], &options, &["--", "sh", "fail.sh"]].concat();
    machine.longshore(&words).expect(12);
    let found = why(&machine);
    let evidence = found["explanation"]["evidence"].to_string();
    assert!(evidence.contains("restarted 1 of 1 times"), "{evidence}");
    assert_eq!(found["exitCode"], 12);
    eventually("no command is left", || {
        let pods = machine.longshore(&["get", "pods", "--output", "json"]);
        let pods = pods.json();
        let mut pods = pods["items"].as_array().unwrap().iter();
        pods.all(|pod| pod["status"]["phase"] != "Running")
    });
}

/// The processes that a command starts end with it, even outside its process group.
#[test]
fn a_restart_leaves_no_process_of_the_attempt_before() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let script = "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' &\n\
        if test $LONGSHORE_ATTEMPT = 1; then\n\
            test $LONGSHORE_INDEX = 1 && sleep 1 && exit 1\n\
            wait\n\
        fi\n\
        sleep 0.3\n\
        test $LONGSHORE_INDEX = 1 || grep -sc '[w]hile :' /proc/[0-9]*/cmdline | grep -c ':1'\n\
        exit 0\n";
    machine.write("start.sh", script);
    machine.write("longshore.toml", "termination_grace = '1s'\n");
    let options = ["--retries", "1", "--restart", "run", "--role", "w=2"];
    let words = [&["run"][..], &options, &["--", "sh", "start.sh"]].concat();
    let answer = machine.longshore(&words).expect(0);
    // The output of the second attempt.
    assert!(answer.out.contains("w/0 | 1\n"), "{}", answer.out);
}

/// The process of the cluster is killed, with the node and all pods.
#[test]
fn a_run_restarts_after_the_cluster_was_killed_and_its_client() {
    let machine = machine();
    let options = ["--retries", "1", "--restart", "run", "--role", "w=2"];
    let running = start(&machine, &options);
    wait_for_lines(&machine, &["w/0 1", "w/1 1"]);
    running.signal("KILL");
    drop(running);
    for round in 0..2 {
        let pid = machine.pid().unwrap().to_string();
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-KILL", &pid]).status().unwrap().success());
        eventually("the cluster is stopped", || machine.pid().is_none());
        machine.longshore(&["up"]).expect(0);
        let count = 4 + 2 * round;
        eventually("both tasks run again", || lines(&machine).len() == count);
    }
    // Two pods were lost each time, which does not count.
    let all = ["w/0 1", "w/0 3", "w/0 5", "w/1 1", "w/1 3", "w/1 5"];
    assert_eq!(lines(&machine), all);
    machine.write("end", "");
    machine.longshore(&["attach", "last"]).expect(0);
}

/// Other programs of the machine can connect to the first task.
#[test]
fn strangers_cannot_order_or_disturb_the_tasks() {
    let machine = machine();
    let options = ["--retries", "1", "--restart", "run", "--role", "w=2"];
    let running = start(&machine, &options);
    wait_for_lines(&machine, &["w/0 1", "w/1 1"]);
    let pod = pod(&machine, "w", 0);
    let address = format!("{}:8472", pod["status"]["podIP"].as_str().unwrap());
    let mut silent = Vec::new();
    for text in [
        "",
        "\n",
        "x y\n",
        "{\"join\":{\"role\":\"w\",\"index\":1,\"replaced\":9,\"last\":9}}\n",
    ] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        if text.is_empty() {
            silent.push(stream);
            continue;
        }
        // The connection sends random text, and is then closed.
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert_eq!(answer.trim().len(), 32, "{answer}");
    }
    silent.extend((0..200).filter_map(|_| TcpStream::connect(&address).ok()));
    assert_eq!(lines(&machine), ["w/0 1", "w/1 1"]);
    end(&machine, running).expect(0);
    drop(silent);
    assert_eq!(lines(&machine), ["w/0 1", "w/1 1"]);
}

#[test]
fn a_pod_of_higher_priority_preempts_without_a_failure() {
    let machine = machine();
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "high"}, "value": 1000,
    });
    machine.write("class.json", &class.to_string());
    machine.longshore(&["create", "-f", "class.json"]).expect(0);
    let nodes = machine
        .longshore(&["get", "nodes", "--output", "json"])
        .json();
    let cpus = &nodes["items"][0]["status"]["allocatable"]["cpu"];
    let cpus = cpus.as_str().unwrap();
    let running = start(&machine, &["--retries", "1", "--cpu", cpus]);
    wait_for_lines(&machine, &["main/0 1"]);
    let words = [
        "run",
        "--no-code",
        "--name",
        "high",
        "--priority-class",
        "high",
        "--cpu",
        cpus,
    ];
    machine
        .longshore(&[&words[..], &["--", "true"]].concat())
        .expect(0);
    wait_for_lines(&machine, &["main/0 1", "main/0 2"]);
    let answer = end(&machine, running).expect(0);
    assert!(
        answer
            .err
            .contains("a pod of higher priority preempted it; does not count as a failure"),
        "{}",
        answer.err
    );
}

#[test]
fn an_exit_code_that_is_not_retried_ends_the_run_at_once() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let options = ["--retries", "3", "--no-retry-exit-code", "64", "--no-code"];
    let words = [&["run"][..], &options, &["--", "sh", "-c", "exit 64"]].concat();
    let answer = machine.longshore(&words).expect(64);
    assert!(!answer.err.contains("restarting"), "{}", answer.err);
    // In a sweep, the exit code ends only the combination.
    let sweep = ["--sweep", "n=64,0", "--", "sh", "-c", "exit {n}"];
    let words = [&["run"][..], &options, &sweep].concat();
    machine.longshore(&words).expect(64);
    let table = machine.longshore(&["sweep", "last", "--output", "json"]);
    let table = table.json();
    let states = table["combinations"].as_array().unwrap().iter();
    let states: Vec<&Value> = states.map(|row| &row["state"]).collect();
    assert_eq!(states, ["failed", "succeeded"]);
}

/// A command that ignores SIGTERM is killed after the grace period.
#[test]
fn a_time_limit_warns_ends_and_kills() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("longshore.toml", "termination_grace = '1s'\n");
    let script = "trap 'echo warned' USR2; trap 'echo asked' TERM\nwhile :; do sleep 0.1; done\n";
    machine.write("stay.sh", script);
    let words = [
        "run",
        "--task-timeout",
        "2s",
        "--timeout-warning",
        "1s",
        "--timeout-signal",
        "USR2",
        "--",
        "sh",
        "stay.sh",
    ];
    let answer = machine.longshore(&words).expect(124);
    // Between them, the shell may report that its child was terminated.
    let asked = answer.out.split_once("main/0 | warned\n");
    assert!(
        asked.is_some_and(|(_, rest)| rest.contains("main/0 | asked\n")),
        "{}",
        answer.out
    );
    let found = why(&machine);
    assert_eq!(found["explanation"]["kind"], "deadline");
    let cause = found["explanation"]["cause"].as_str().unwrap();
    assert_eq!(cause, "the command took longer than `task_timeout`, 2 s");
}

#[test]
fn impossible_options_are_refused_before_anything_is_created() {
    let machine = Machine::new();
    machine.write("longshore.toml", "command = 'true'\n");
    for (options, remedy) in [
        (&["--restart", "run"][..], "`retries = 3`"),
        (
            &["--restart", "run", "--retries", "1", "--sweep", "n=1,2"],
            "sweep are independent",
        ),
        (
            &["--checkpoint-dir", "/results"],
            "--volume claim:results:/results",
        ),
        (&["--timeout-warning", "1m"], "`task_timeout`"),
        (
            &["--no-retry-exit-code", "0", "--retries", "1"],
            "use 1 to 255",
        ),
    ] {
        let answer = machine.longshore(&[&["run"], options].concat()).expect(2);
        assert!(answer.err.contains(remedy), "{}", answer.err);
    }
    assert!(machine.pid().is_none());
}
