//! Tests of the command of a task, and of what it needs.

use std::{fs, io, process::Command};

use longshore_diagnosis::names;

use super::{pod, role};
use crate::{
    bootstrap::{BootstrapError, exec::cannot_run, fetch_into},
    restarts::{RunKey, Together},
    sweep::{Retry, Sweep},
};

#[test]
fn the_code_is_unpacked_and_the_command_sees_it() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    fetch_into(&pod.places).unwrap();
    // A restarted container finds the files of its first start.
    fs::write(pod.places.work().join("rubbish"), "").unwrap();
    fetch_into(&pod.places).unwrap();
    let script = "cat hello.txt; ls; echo $GREETING, $LONGSHORE_ROLE/$LONGSHORE_INDEX of $LONGSHORE_COUNT at $LONGSHORE_ADDRESS in $LONGSHORE_RUN; echo ${TF_CONFIG-none}";
    let output = pod
        .prepare("main", "0", &["sh", "-c", script])
        .unwrap()
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "hellohello.txt\nhello main, main/0 of 1 at localhost:8470 in demo-ab2cd\n\
         {\"cluster\":{\"main\":[\"localhost:8470\"]},\"task\":{\"index\":0,\"type\":\"main\"}}\n"
    );
}

#[test]
fn a_task_of_a_sweep_gets_its_combination() {
    let mut pod = pod(vec![role("main", &["localhost:8470"])]);
    pod.config.sweep = Some(Sweep {
        parameters: vec!["lr".to_owned(), "model.size".to_owned()],
        combinations: ["0.1 s", "0.2 l"]
            .map(|values| values.split(' ').map(str::to_owned).collect())
            .into(),
        retry: Some(Retry {
            of: "first-ab2cd".to_owned(),
            indices: vec![3, 17],
        }),
        ..Sweep::default()
    });
    pod.write();
    fs::create_dir(pod.places.work()).unwrap();
    let script = "echo $1 $LONGSHORE_PARAM_LR $LONGSHORE_PARAM_MODEL_SIZE $LONGSHORE_INDEX/$LONGSHORE_COUNT $LONGSHORE_COMBINATION $WORLD_SIZE $RANK; echo 1 > $LONGSHORE_METRICS";
    let output = pod
        .prepare(
            "main",
            "1",
            &["sh", "-c", script, "sh", "--lr={lr}{{lr}}${lr}"],
        )
        .unwrap()
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "--lr=0.2{lr}${lr} 0.2 l 1/2 17 1 0\n"
    );
    assert!(pod.places.work().join(names::METRICS_FILE).exists());
    let error = pod.prepare("main", "2", &["true"]).unwrap_err().to_string();
    assert!(error.contains("no combination 2: it has 2"), "{error}");
    // Without a sweep, braces are text.
    pod.config.sweep = None;
    pod.write();
    let prepared = pod.prepare("main", "0", &["echo", "{lr}"]).unwrap();
    assert_eq!(prepared.get_args().collect::<Vec<_>>(), ["{lr}"]);
}

#[test]
fn a_task_without_code_has_a_metrics_file() {
    let mut pod = pod(vec![role("main", &["localhost:8470"])]);
    pod.config.bundle = None;
    pod.write();
    let mut command = pod
        .prepare("main", "0", &["sh", "-c", "echo 1 > $LONGSHORE_METRICS"])
        .unwrap();
    assert_eq!(command.get_current_dir(), None);
    assert!(command.status().unwrap().success());
    assert!(pod.places.work().join(names::METRICS_FILE).exists());
}

#[test]
fn missing_peers_are_listed() {
    let pod = pod(vec![role("worker", &["localhost:1", "missing.invalid:2"])]);
    let error = pod
        .prepare("worker", "0", &["true"])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("1 of 2 peer names did not resolve within 0 s: missing.invalid ("),
        "{error}"
    );
}

#[test]
fn a_replaced_task_starts_without_peers_that_have_ended() {
    let mut pod = pod(vec![role("worker", &["localhost:1", "missing.invalid:2"])]);
    fs::create_dir(pod.places.work()).unwrap();
    let again = |pod: &super::Pod| pod.prepare_again("worker", "0", &["true"], 1);
    assert!(again(&pod).is_ok());
    // Tasks that restart together wait for all.
    pod.config.restarts.together = Some(Together {
        port: 1,
        key: RunKey::random(),
        timeout: 1,
    });
    pod.write();
    let error = again(&pod).unwrap_err().to_string();
    assert!(error.contains("missing.invalid"), "{error}");
}

#[test]
fn missing_files_and_variables_are_named() {
    let pod = pod(vec![role("main", &["localhost:1"])]);
    let message = |result: Result<Command, BootstrapError>| result.unwrap_err().to_string();
    assert!(message(pod.prepare("main", "0", &[])).contains("no command"));
    assert!(message(pod.prepare("", "0", &["true"])).contains("LONGSHORE_ROLE is not set"));
    assert!(
        message(pod.prepare("main", "x", &["true"])).contains("is \"x\", which is not a number")
    );
    fs::write(pod.places.config.join("run.json"), "{").unwrap();
    assert!(message(pod.prepare("main", "0", &["true"])).contains("run.json"));
}

#[test]
fn missing_and_non_executable_commands_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), "#!/no/such/interpreter\n").unwrap();
    let error = |word: &str, kind| cannot_run(word.into(), io::Error::from(kind), folder.path());
    let missing = error("pyton", io::ErrorKind::NotFound);
    assert_eq!(
        (missing.to_string().as_str(), missing.exit_code()),
        ("command not found: pyton", 127)
    );
    assert_eq!(error("./gone", io::ErrorKind::NotFound).exit_code(), 127);
    assert_eq!(error("./script", io::ErrorKind::NotFound).exit_code(), 126);
    assert_eq!(
        error("./script", io::ErrorKind::PermissionDenied).exit_code(),
        126
    );
}
