//! The first commands of a new user, who has a kubeconfig and no settings.

use crate::{
    machine::Running,
    stage::{Stage, said},
};

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn the_default_image_without_a_launcher_image_is_rejected_before_anything_is_created() {
    let stage = Stage::new();
    let words = ["run", "--context", "real", "--namespace", &stage.name];
    let answer = stage
        .longshore(&[&words[..], &["--", "echo", "hi"]].concat())
        .expect(4);
    for part in ["python:3-slim", "--launcher-image", "docker/Dockerfile"] {
        assert!(answer.err.contains(part), "{}", answer.err);
    }
    let left = stage.kubectl(&["get", "jobs,pods,secrets,services", "--output", "name"]);
    assert_eq!(left, "");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn the_default_image_with_a_launcher_image_runs() {
    let stage = Stage::new();
    stage
        .machine
        .write("greet.py", "print('hello from a file')");
    let answer = stage.run(&["--", "python3", "greet.py"]).expect(0);
    assert_eq!(said(&answer), "hello from a file\n", "{}", answer.err);
    let why = stage.about(&["why", "last"]).expect(0);
    assert!(why.out.ends_with("succeeded: all tasks succeeded\n"));
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn exit_codes_are_those_of_the_command() {
    let stage = Stage::new();
    let answer = stage
        .run(&["--", "sh", "-c", "echo no >&2; exit 41"])
        .expect(41);
    assert!(answer.err.contains("exit code 41"), "{}", answer.err);
    stage.run(&["--", "sh", "-c", "kill -SEGV $$"]).expect(139);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_run_is_attached_and_cancelled() {
    let stage = Stage::new();
    let run = stage.detach(&["--", "sh", "-c", "echo begun; sleep 3; echo over; exit 5"]);
    let answer = stage.about(&["attach", &run]).expect(5);
    assert_eq!(said(&answer), "begun\nover\n");
    let long = stage.detach(&["--", "sleep", "1000"]);
    stage.eventually("it runs", || stage.phase().contains("Running"));
    stage.about(&["cancel", &long]).expect(0);
    let why = stage.about(&["why", &long]).expect(0);
    assert!(why.out.contains("was cancelled"), "{}", why.out);
    stage.about(&["rm", &run, &long]).expect(0);
    let left = stage.kubectl(&["get", "jobs,pods,secrets,services", "--output", "name"]);
    assert_eq!(left, "");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn ctrl_c_cancels_or_detaches() {
    let state_after = |words: &[&str]| {
        let stage = Stage::new();
        let command = ["--", "sh", "-c", "echo begun; sleep 1000"];
        let followed = Running::start(stage.run_command(&[words, &command].concat()));
        stage.eventually("it runs", || stage.phase() == "Running");
        followed.signal("INT");
        let answer = followed.end();
        assert_eq!(answer.code, 130, "{}", answer.err);
        stage.why("last")["state"].clone()
    };
    // Without a terminal, the program does not ask.
    assert_eq!(state_after(&[]), "cancelled");
    assert_eq!(state_after(&["--on-interrupt", "detach"]), "running");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_schedule_runs_every_minute() {
    let stage = Stage::new();
    let answer = stage.run(&[
        "--cron",
        "* * * * *",
        "--name",
        "tick",
        "--",
        "echo",
        "tock",
    ]);
    answer.expect(0);
    stage.eventually("a run of the schedule succeeded", || {
        let jobs = "-o=jsonpath={.items[*].status.succeeded}";
        stage
            .ask(&["get", "jobs", jobs])
            .is_some_and(|done| done.starts_with('1'))
    });
    let logs = stage.kubectl(&[
        "logs",
        "--selector",
        "longshore.dev/role=main",
        "--tail",
        "1",
    ]);
    assert_eq!(logs.trim(), "tock");
}
