//! Standard output that accepts no data: the error is reported, and a successful command fails.

use std::{fs::OpenOptions, process::Stdio};

use crate::machine::{Answer, Machine, eventually};

/// Runs the program with a full device as its standard output.
fn on_a_full_device(machine: &Machine, arguments: &[&str]) -> Answer {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = machine.command(arguments);
    command.stdin(Stdio::null()).stdout(full);
    Answer::new(&command.output().unwrap())
}

#[test]
fn lost_output_is_an_error_of_every_command() {
    let machine = Machine::new();
    machine.write("a.py", "print('hello')");
    machine.longshore(&["up"]).expect(0);
    machine
        .longshore(&["run", "--name", "full", "--", "echo", "hello"])
        .expect(0);
    let runs = machine.longshore(&["runs", "-o", "json"]).expect(0).json();
    let run = runs[0]["name"].as_str().unwrap();
    let pod = machine.longshore(&["get", "pods", "-o", "name"]).expect(0);
    let pod = pod.out.trim();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["completions", "bash"],
        &["get", "pods", "-A"],
        &["get", "pods", "-A", "-o", "yaml"],
        &["get", "pods", "-A", "-o", "json"],
        &["get", "pods", "-A", "-o", "name"],
        &["describe", pod],
        &["logs", pod],
        &["logs", run],
        &["status"],
        &["status", "-o", "json"],
        &["runs"],
        &["runs", "-o", "json"],
        &["why", run],
        &["attach", run],
        &["run", "--dry-run", "--", "true"],
        &["run", "--", "echo", "hello"],
        &["run", "--detach", "--", "true"],
    ] {
        let answer = on_a_full_device(&machine, arguments);
        assert_eq!(answer.code, 1, "{arguments:?}: {}", answer.err);
        let error = "error: cannot write to standard output: No space left on device";
        assert!(answer.err.contains(error), "{arguments:?}: {}", answer.err);
    }
}

#[test]
fn the_exit_code_of_a_failed_command_is_kept() {
    let machine = Machine::new();
    machine.write("a.py", "print('hello')");
    let command = ["run", "--", "sh", "-c", "echo hello; exit 7"];
    let answer = on_a_full_device(&machine, &command);
    assert_eq!(answer.code, 7, "{}", answer.err);
    assert!(
        answer.err.contains("cannot write to standard output"),
        "{}",
        answer.err
    );
}

#[test]
fn lost_output_of_an_ssh_server_is_an_error() {
    let machine = Machine::new();
    let run = ["run", "--detach", "--name", "job", "--", "sleep", "600"];
    machine.longshore(&run).expect(0);
    eventually("the task runs", || {
        machine.longshore(&["exec", "last", "--", "true"]).code == 0
    });
    let serve = |input: Stdio, output: Stdio| {
        let mut command = machine.command(&["ssh-proxy", "last.longshore"]);
        command.stdin(input).stdout(output);
        Answer::new(&command.output().unwrap())
    };
    // With and without a client that is still connected.
    let (input, client) = std::io::pipe().unwrap();
    for input in [input.into(), Stdio::null()] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let answer = serve(input, full.into());
        let error = "error: cannot write to standard output: No space left on device";
        assert!(answer.err.contains(error), "{}", answer.err);
        answer.expect(1);
    }
    drop(client);
    let (reader, output) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(serve(Stdio::null(), output.into()).expect(0).err, "");
}

#[test]
fn a_reader_that_has_read_enough_is_not_an_error() {
    let machine = Machine::new();
    let script = format!(
        "'{0}' run --help | head -n 1; '{0}' --help | true",
        env!("CARGO_BIN_EXE_longshore")
    );
    let answer = Answer::new(&machine.shell(&script).output().unwrap()).expect(0);
    assert_eq!(answer.err, "");
}
