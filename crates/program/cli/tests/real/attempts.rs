//! Attempts of tasks: disruptions, restarts of the whole run, and time limits.

use crate::{machine::Running, stage::Stage};

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_drain_does_not_count_as_a_failure() {
    let stage = Stage::new();
    // The attempt after the disruption fails, and one failure is permitted.
    let script = "echo attempt $LONGSHORE_ATTEMPT\n\
        case $LONGSHORE_ATTEMPT in 1) exec sleep 1000;; 2) exit 3;; esac\n";
    stage.machine.write("task.sh", script);
    let words = ["--retries", "1", "--", "sh", "task.sh"];
    let followed = Running::start(stage.run_command(&words));
    stage.eventually("it runs", || stage.phase() == "Running");
    let pod = stage.kubectl(&["get", "pods", "--output", "name"]);
    let pod = pod.trim().trim_start_matches("pod/");
    let eviction = serde_json::json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod},
        "deleteOptions": {"gracePeriodSeconds": 1},
    });
    stage.machine.write("eviction.json", &eviction.to_string());
    let path = stage.machine.code().join("eviction.json");
    let raw = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", stage.name);
    stage.kubectl(&[
        "create",
        "--raw",
        &raw,
        "--filename",
        path.to_str().unwrap(),
    ]);
    let answer = followed.end().expect(0);
    for attempt in 1..=3 {
        let line = format!("main/0 | attempt {attempt}");
        assert_eq!(
            answer.out.matches(&line).count(),
            1,
            "{}\n{}",
            answer.out,
            answer.err
        );
    }
    let note = "does not count as a failure";
    assert!(answer.err.contains(note), "{}", answer.err);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn all_tasks_restart_when_one_fails_without_an_operator() {
    let stage = Stage::new();
    let script = "echo \"$LONGSHORE_INDEX in $LONGSHORE_ATTEMPT\"\n\
        test $LONGSHORE_ATTEMPT = 2 && exit 0\n\
        test $LONGSHORE_INDEX = 1 && sleep 1 && exit 9\n\
        trap 'exit 1' TERM; sleep 600 & wait\n";
    stage.machine.write("task.sh", script);
    let words = ["--retries", "1", "--restart", "run", "--role", "w=2"];
    let answer = stage.run(&[&words[..], &["--", "sh", "task.sh"]].concat());
    let answer = answer.expect(0);
    for (index, attempt) in [(0, 1), (1, 1), (0, 2), (1, 2)] {
        let line = format!("w/{index} | {index} in {attempt}");
        assert_eq!(
            answer.out.matches(&line).count(),
            1,
            "{}\n{}",
            answer.out,
            answer.err
        );
    }
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_task_is_warned_before_its_time_limit() {
    let stage = Stage::new();
    let settings = "task_timeout = '8s'\ntimeout_warning = '4s'\n";
    stage.machine.write("longshore.toml", settings);
    let script = "trap 'echo saved; exit 7' TERM USR1 USR2; echo begins; sleep 600 & wait\n";
    stage.machine.write("task.sh", script);
    let answer = stage.run(&["--", "sh", "task.sh"]);
    assert_ne!(answer.code, 0, "{}", answer.err);
    assert!(
        answer.out.contains("main/0 | saved"),
        "{}\n{}",
        answer.out,
        answer.err
    );
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn what_a_run_uses_is_recorded() {
    let stage = Stage::new();
    let script = "import time\nx = bytearray(30_000_000)\nend = time.time() + 4\nwhile time.time() < end: pass\n";
    stage.machine.write("busy.py", script);
    let answer = stage.run(&["--cpu", "50m", "--", "python3", "busy.py"]);
    let answer = answer.expect(0);
    assert!(answer.err.contains("usage   mean CPU "), "{}", answer.err);
    let usage = stage.about(&["top", "last", "--output", "json"]);
    let usage = usage.expect(0).json();
    let recorded = &usage[0]["tasks"][0]["recorded"];
    let peak = recorded["peakMemory"].as_f64().unwrap();
    assert!((30e6..300e6).contains(&peak), "{usage}");
    let mean = recorded["meanCpu"].as_f64().unwrap();
    assert!((0.05..1.5).contains(&mean), "{usage}");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn what_a_running_task_uses_needs_no_metrics_server() {
    let stage = Stage::new();
    let script = "import time\nx = bytearray(30_000_000)\ntime.sleep(1000)\n";
    stage.machine.write("wait.py", script);
    let run = stage.detach(&["--cpu", "50m", "--", "python3", "wait.py"]);
    let mut last = String::new();
    stage.eventually("the usage is shown", || {
        let usage = stage.about(&["top", &run, "--output", "json"]).expect(0);
        last = usage.err.clone();
        let usage = usage.json();
        let peak = &usage[0]["tasks"][0]["recorded"]["peakMemory"];
        peak.as_f64()
            .is_some_and(|peak| (30e6..300e6).contains(&peak))
    });
    assert_eq!(last, "");
}
