//! The parts of the invoking shell's environment that a run takes, and env files.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use crate::machine::{Answer, Machine};

/// Writes an executable file.
fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run_with(machine: &Machine, variables: &[(&str, &str)], arguments: &[&str]) -> Answer {
    let mut command = machine.command(arguments);
    command.envs(variables.iter().copied());
    Answer::new(&command.output().unwrap())
}

#[test]
fn the_environment_is_that_of_the_calling_shell_not_of_the_shell_that_started_the_cluster() {
    let machine = Machine::new();
    let venv = machine.home().join("venv");
    program(
        &venv.join("bin/tool"),
        "#!/bin/sh\necho the tool of the venv\n",
    );
    let mut up = machine.command(&["up"]);
    up.env("LD_LIBRARY_PATH", "/of/the/cluster")
        .env("LANG", "C");
    Answer::new(&up.output().unwrap()).expect(0);

    let path = format!(
        "{}:{}",
        venv.join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let shell = [
        ("PATH", path.as_str()),
        ("VIRTUAL_ENV", venv.to_str().unwrap()),
        ("CUDA_VISIBLE_DEVICES", "1"),
        ("OMP_NUM_THREADS", "3"),
        ("HF_TOKEN", "hush"),
        ("AWS_SECRET_ACCESS_KEY", "hush"),
        ("ALL_PROXY", "http://me:hush@proxy"),
    ];
    let script = "tool; echo $VIRTUAL_ENV $CUDA_VISIBLE_DEVICES $OMP_NUM_THREADS; \
        echo ${LD_LIBRARY_PATH-none} ${LANG-none}; env | grep hush; command -v longshore";
    let answer = run_with(&machine, &shell, &["run", "--", "sh", "-c", script]).expect(0);
    let out = answer.out.replace("main/0 | ", "");
    let expected = format!("the tool of the venv\n{} 1 3\nnone none\n/", venv.display());
    assert!(out.starts_with(&expected), "{out}");
    assert!(!out.contains("hush"), "{out}");

    // The plan shows this variable, and no other variable of the shell.
    let plan = run_with(&machine, &shell, &["run", "--dry-run", "--", "tool"]).expect(0);
    assert!(plan.out.contains("longshore.dev/caller"), "{}", plan.out);
    assert!(plan.out.contains(venv.to_str().unwrap()), "{}", plan.out);
    assert!(!plan.out.contains("hush"), "{}", plan.out);
    // Explicit settings override the shell.
    let said = [
        "run",
        "-e",
        "VIRTUAL_ENV=/mine",
        "--",
        "printenv",
        "VIRTUAL_ENV",
    ];
    let answer = run_with(&machine, &shell, &said).expect(0);
    assert!(answer.out.contains("| /mine"), "{}", answer.out);
    // On another cluster, the folders of this machine do not exist.
    machine
        .longshore(&["up", "--kubeconfig", "../kubeconfig"])
        .expect(0);
    let other = [
        "run",
        "--kubeconfig",
        "../kubeconfig",
        "--dry-run",
        "--",
        "tool",
    ];
    let plan = run_with(&machine, &shell, &other).expect(0);
    assert!(!plan.out.contains("longshore.dev/caller"), "{}", plan.out);
}

#[test]
fn a_virtual_environment_next_to_the_code_is_used_by_its_relative_path() {
    let machine = Machine::new();
    machine.write("train.py", "import sys; print('prefix', sys.prefix)\n");
    let made = machine
        .shell("python3 -m venv --without-pip .venv")
        .status()
        .unwrap();
    assert!(made.success());
    for command in [
        &["run", "--", ".venv/bin/python", "train.py"][..],
        &[
            "run",
            "--",
            "sh",
            "-c",
            ". ./.venv/bin/activate && python train.py",
        ],
    ] {
        let answer = machine.longshore(command).expect(0);
        assert!(answer.out.contains("| prefix "), "{}", answer.out);
        assert!(answer.out.trim_end().ends_with("/.venv"), "{}", answer.out);
        assert!(!answer.err.contains("warning"), "{}", answer.err);
    }
    // On another cluster, the virtual environment does not exist.
    machine
        .longshore(&["up", "--kubeconfig", "../kubeconfig"])
        .expect(0);
    let other = [
        "run",
        "--kubeconfig",
        "../kubeconfig",
        "--dry-run",
        "--",
        ".venv/bin/python",
    ];
    let answer = machine.longshore(&other).expect(0);
    assert!(
        answer
            .err
            .contains("is a virtual environment of this machine and is not sent"),
        "{}",
        answer.err
    );
}

#[test]
fn variables_are_passed_through_by_name_and_read_from_files() {
    let machine = Machine::new();
    machine.write(
        ".env",
        "# settings\nA=from the file $$ $(A)\nB=file\n\nTOKEN\nAWAY\n",
    );
    machine.longshore(&["up"]).expect(0);
    let shell = [("TOKEN", "hush"), ("NAME", "a \"b\" $$")];
    let arguments = ["run", "--env-file", ".env", "-e", "NAME", "-e", "B=flag"];
    let script = "echo \"$A|$B|$NAME|$TOKEN|${AWAY-none}\"; ls -A";
    let run = [&arguments[..], &["--", "sh", "-c", script]].concat();
    let answer = run_with(&machine, &shell, &run).expect(0);
    assert_eq!(
        answer.out.lines().next().unwrap(),
        "main/0 | from the file $$ $(A)|flag|a \"b\" $$|hush|none"
    );
    assert_eq!(
        answer.out.lines().count(),
        1,
        "the file itself is not sent: {}",
        answer.out
    );
    // The values are in the run's Secret only.
    for kind in ["jobs", "pods"] {
        let objects = machine
            .longshore(&["get", kind, "--output", "yaml"])
            .expect(0)
            .out;
        assert!(!objects.contains("hush"), "{objects}");
    }
    let plan = run_with(
        &machine,
        &shell,
        &[&run[..1], &["--dry-run"], &run[1..]].concat(),
    )
    .expect(0);
    assert!(!plan.out.contains("hush"), "{}", plan.out);

    fs::remove_file(machine.code().join(".env")).unwrap();
    let refused = |arguments: &[&str]| machine.longshore(arguments).expect(2).err;
    let unset = refused(&["run", "-e", "NAME", "--", "true"]);
    assert!(
        unset.contains("invalid --env \"NAME\": no variable of that name is set"),
        "{unset}"
    );
    machine.write("bad.env", "A=1\nexport TOKEN=hush\n");
    let bad = refused(&["run", "--env-file", "bad.env", "--", "true"]);
    assert!(
        bad.contains("bad.env:2: the name before `=` contains blanks"),
        "{bad}"
    );
    assert!(!bad.contains("hush"), "{bad}");
    let none = refused(&["run", "--env-file", "none.env", "--", "true"]);
    assert!(none.contains("cannot read none.env"), "{none}");
    machine.write("quoted.env", "A=\"x\"\n");
    let quoted = machine.longshore(&["run", "--env-file", "quoted.env", "--", "printenv", "A"]);
    let quoted = quoted.expect(0);
    assert!(quoted.out.contains("| \"x\""), "{}", quoted.out);
    assert!(
        quoted
            .err
            .contains("quotation marks are part of the value of A"),
        "{}",
        quoted.err
    );
}
