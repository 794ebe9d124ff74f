//! Tests of the command of a task, and of its requirements.

use std::{fs, path::Path, process::Command};

use longshore_diagnosis::{names, start_problem::StartProblem};

use super::{pod, role};
use crate::{
    bootstrap::{BootstrapError, fetch_into, start::Attempt},
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

/// Starts a command in a folder, and returns the error.
fn start_error(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> BootstrapError {
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .current_dir(folder)
        .envs(variables.iter().copied());
    let attempt = Attempt::new(&command, folder);
    attempt.error(command.spawn().unwrap_err())
}

#[test]
fn the_cause_of_a_failed_start_is_found() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8], mode: u32| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let elf = |machine: u8, interpreter: &[u8]| {
        let mut bytes = fs::read("/proc/self/exe").unwrap()[..64].to_vec();
        bytes[18] = machine;
        // A single program header, for the dynamic loader.
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..58].copy_from_slice(&[56, 0, 1, 0]);
        let mut header = [0; 56];
        header[0] = 3;
        header[8..16].copy_from_slice(&120_u64.to_le_bytes());
        header[32..40].copy_from_slice(&(interpreter.len() as u64).to_le_bytes());
        bytes.extend(header);
        bytes.extend(interpreter);
        bytes
    };
    let own = fs::read("/proc/self/exe").unwrap()[18];
    write("script", b"echo hello\n", 0o755);
    write("empty", b"", 0o755);
    write("windows", b"#!/bin/sh\r\necho\r\n", 0o755);
    write("interpreter", b"#!/no/such/python\n", 0o755);
    write("plain.py", b"#!/bin/sh\n", 0o644);
    write("other", &elf(own ^ 0x55, b"/lib/ld.so\0"), 0o755);
    write("loader", &elf(own, b"/no/ld.so\0"), 0o755);
    fs::create_dir(folder.path().join("src")).unwrap();
    let large = "x".repeat(140_000);
    let cases: &[(&[&str], u8, &str)] = &[
        (&["pyton"], 127, "command not found: pyton"),
        (&["./gone"], 127, "command not found: ./gone"),
        (
            &["python3 t.py"],
            127,
            "command not found: python3 t.py (no program has this name, which contains spaces)",
        ),
        (
            &["plain.py"],
            127,
            "command not found: plain.py (a file of this name is in the folder of the code, but not on PATH)",
        ),
        (
            &["./script"],
            126,
            "cannot run ./script: its first line does not name an interpreter",
        ),
        (&["./empty"], 126, "cannot run ./empty: the file is empty"),
        (
            &["./windows"],
            126,
            "cannot run ./windows: its first line ends with a carriage return",
        ),
        (
            &["./interpreter"],
            126,
            "cannot run ./interpreter: the interpreter in its first line does not exist: /no/such/python",
        ),
        (
            &["./plain.py"],
            126,
            "cannot run ./plain.py: the file is not executable",
        ),
        (&["./src"], 126, "cannot run ./src: it is a folder"),
        (
            &["./other"],
            126,
            "cannot run ./other: it is built for another architecture",
        ),
        (
            &["./loader"],
            126,
            "cannot run ./loader: its dynamic loader does not exist: /no/ld.so",
        ),
        (
            &["true", "a", &large],
            126,
            "cannot run true: an argument is too large: number 2 has 140001 bytes, and the system permits 131072",
        ),
    ];
    for (words, code, expected) in cases {
        let error = start_error(folder.path(), words, &[]);
        assert_eq!(
            (error.to_string().as_str(), error.exit_code()),
            (*expected, *code)
        );
    }
    let error = start_error(folder.path(), &["true"], &[("LARGE", &large)]);
    let expected = "cannot run true: a variable is too large: LARGE has 140007 bytes, and the system permits 131072";
    assert_eq!(error.to_string(), expected);
    let many: Vec<(String, &str)> = (0..40)
        .map(|index| (format!("V{index}"), &large[..120_000]))
        .collect();
    let many: Vec<(&str, &str)> = many
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let error = start_error(folder.path(), &["true"], &many);
    assert!(
        error
            .to_string()
            .contains("its arguments and variables are too large: "),
        "{error}"
    );
}

#[test]
fn each_problem_has_a_phrase_of_its_own_and_a_remedy() {
    for problem in StartProblem::ALL {
        let text = format!("cannot run a: {}: details", problem.phrase());
        assert_eq!(StartProblem::in_text(&text), Some(problem));
        assert!(!problem.remedy().is_empty());
    }
    assert_eq!(StartProblem::in_text("command not found: a"), None);
}
