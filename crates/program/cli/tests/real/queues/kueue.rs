//! Runs with `--queue`.

use super::{ALL, Queue, eventually_queued, phases, remove, roles, stays_cancelled};
use crate::{
    machine::{Answer, Running},
    stage::{Stage, said},
};

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_queue_admits_a_run_until_its_end() {
    let stage = Stage::new();
    let _queue = Queue::new(&stage);
    let words = ["--queue", "team", "--cpu", "500m", "--", "echo", "admitted"];
    let ran = stage.run(&words).expect(0);
    assert_eq!(said(&ran), "admitted\n", "{}", ran.err);
    let failing = [
        "--queue", "team", "--cpu", "500m", "--", "sh", "-c", "exit 7",
    ];
    stage.run(&failing).expect(7);
    let missing = ["--queue", "tema", "--", "true"];
    let refused = stage.run(&missing).expect(4);
    assert!(
        refused.err.contains("there is no queue \"tema\""),
        "{}",
        refused.err
    );
    stage.about(&["rm", "--finished"]).expect(0);
    stage.eventually("no object is left", || {
        stage.kubectl(&["get", ALL, "--output", "name"]).is_empty()
    });
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_run_waits_for_the_quota_of_its_queue() {
    let stage = Stage::new();
    let _queue = Queue::new(&stage);
    let queue = ["--queue", "team", "--cpu", "800m"];
    let begin = |name: &str, command: &[&str]| {
        stage.detach(&[&queue[..], &["--name", name, "--"], command].concat())
    };
    let first = begin("first", &["sleep", "1000"]);
    stage.eventually("it runs", || phases(&stage, &first) == "Running");
    let words = [&queue[..], &["--name", "second", "--", "echo", "its turn"]].concat();
    let second = Running::start(stage.run_command(&words));
    let mut name = String::new();
    stage.eventually("the run exists", || {
        let runs = stage.about(&["runs", "--output", "name"]).out;
        let found = runs.lines().find(|line| line.starts_with("second"));
        name = found.unwrap_or_default().to_owned();
        !name.is_empty()
    });
    let cause = eventually_queued(&stage, &name);
    for part in ["\"team\"", "cpu"] {
        assert!(cause.contains(part), "{cause}");
    }
    assert_eq!(phases(&stage, &name), "");
    let third = begin("third", &["sleep", "1000"]);
    eventually_queued(&stage, &third);
    stage.about(&["cancel", &third]).expect(0);

    stage.about(&["cancel", &first]).expect(0);
    let answer = second.end().expect(0);
    assert_eq!(said(&answer), "its turn\n", "{}", answer.err);
    let explanation = "it waits in the queue \"team\"";
    assert!(answer.err.contains(explanation), "{}", answer.err);
    // The quota is free again, and the cancelled run does not take it.
    stays_cancelled(&stage, &first);
    stays_cancelled(&stage, &third);
    stage.about(&["rm", &first, &third]).expect(0);
    remove(&stage, &name);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn roles_in_a_queue_end_together() {
    let stage = roles();
    let _queue = Queue::new(&stage);
    let stopped = |answer: Answer| {
        stage.eventually("the serving role has ended", || {
            !stage.phase().contains("Running")
        });
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert!(!stage.phase().contains("Running"), "{}", answer.err);
    };
    stopped(stage.run(&["--queue", "team"]).expect(0));
    stopped(stage.run(&["--queue", "team", "--env", "CODE=7"]).expect(7));
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_jobset_waits_in_a_queue() {
    let stage = roles();
    let _queue = Queue::new(&stage);
    // Three tasks.
    let words = ["--jobset", "--queue", "team", "--cpu", "250m"];
    stage.run(&words).expect(0);
    stage.about(&["rm", "last"]).expect(0);
    let long = [&words[..], &["--name", "long", "--", "sleep", "1000"]].concat();
    let long = stage.detach(&long);
    stage.eventually("it runs", || phases(&stage, &long).contains("Running"));
    let next = stage.detach(&words);
    let cause = eventually_queued(&stage, &next);
    assert!(cause.contains("\"team\""), "{cause}");
    stage.about(&["cancel", &long]).expect(0);
    stage.about(&["attach", &next]).expect(0);
    stays_cancelled(&stage, &long);
    stage.about(&["rm", &long]).expect(0);
    remove(&stage, &next);
}

/// Two namespaces as contexts, each with its own quota.
#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_context_whose_queue_has_no_quota_left_is_skipped() {
    let (first, second) = (Stage::new(), Stage::new());
    let _queues = [Queue::new(&first), Queue::new(&second)];
    let context = |name: &str, stage: &Stage| {
        let kubeconfig = stage.kubeconfig();
        let kubeconfig = kubeconfig.display();
        format!(
            "[contexts.{name}]\nkubeconfig = '{kubeconfig}'\nnamespace = '{}'\n",
            stage.name
        )
    };
    let settings = format!(
        "name = 'job'\nqueue = 'team'\nlauncher_image = '{}'\n{}{}",
        first.facts("launcherImage"),
        context("first", &first),
        context("second", &second)
    );
    first.machine.write("longshore.toml", &settings);
    let run = |words: &[&str]| {
        let start = ["run", "--context", "first,second", "--cpu", "800m"];
        let answer = first.machine.longshore(&[&start[..], words].concat());
        answer.expect(0)
    };
    let long = ["--detach", "--", "sleep", "1000"];
    let begun = run(&long);
    assert!(!begun.err.contains("skipped"), "{}", begun.err);
    first.eventually("it runs", || phases(&first, begun.out.trim()) == "Running");

    let ended = run(&["--", "echo", "hi"]);
    let reason =
        "context skipped first: the queue \"team\" has 200m of cpu left, and the run requests 800m";
    assert!(ended.err.contains(reason), "{}", ended.err);
    let runs = ["runs", "--context", "second", "--output", "json"];
    let runs = first.machine.longshore(&runs).expect(0).json();
    assert_eq!(runs[0]["state"], "succeeded", "{runs}");
    assert_eq!(runs[0]["namespace"], second.name.as_str(), "{runs}");

    // A pending run is ahead of the next one in the queue.
    let start = ["run", "--context", "first", "--cpu", "800m"];
    let waits = first.machine.longshore(&[&start[..], &long].concat());
    let waits = waits.expect(0).out.trim().to_owned();
    eventually_queued(&first, &waits);
    // Kueue writes these numbers after it has decided.
    for (stage, count, number) in [
        (&first, "pendingWorkloads", "1"),
        (&second, "reservingWorkloads", "0"),
    ] {
        let path = format!("-o=jsonpath={{.status.{count}}}");
        stage.eventually(count, || {
            stage.kubectl(&["get", "localqueue", "team", &path]) == number
        });
    }
    let ended = run(&["--", "echo", "hi"]);
    let reason = "context skipped first: the queue \"team\" has a workload that waits";
    assert!(ended.err.contains(reason), "{}", ended.err);
}
