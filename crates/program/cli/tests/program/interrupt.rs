//! Ctrl-C.

use std::{
    fs,
    io::Read as _,
    time::{Duration, Instant},
};

use crate::{
    machine::{Machine, Running, eventually, processes_with, unique_word},
    pseudoterminal::Terminal,
};

fn started(machine: &Machine, on_interrupt: &str) -> (Running, String) {
    let word = unique_word();
    // The marker is in the task's arguments, so that the task can be found.
    let script = format!("trap '' INT; echo up; sleep 300; : {word}");
    let arguments = [
        "run",
        "--on-interrupt",
        on_interrupt,
        "--",
        "sh",
        "-c",
        &script,
    ];
    let mut run = Running::start(machine.command(&arguments));
    run.wait_for_output("up");
    (run, word)
}

#[test]
fn without_a_terminal_ctrl_c_cancels_the_run() {
    let machine = Machine::new();
    let (run, word) = started(&machine, "ask");
    run.signal("INT");
    let answer = run.end().expect(130);
    assert!(answer.err.contains("cancelled"), "{}", answer.err);
    machine.assert_no_process(&word);
    machine.longshore(&["status"]).expect(3);
}

#[test]
fn sigterm_cancels_the_run_if_so_configured() {
    let machine = Machine::new();
    let (run, word) = started(&machine, "cancel");
    run.signal("TERM");
    run.end().expect(130);
    machine.assert_no_process(&word);
}

#[test]
fn ctrl_c_detaches_if_so_configured() {
    let machine = Machine::new();
    let (run, word) = started(&machine, "detach");
    run.signal("INT");
    run.end().expect(130);
    machine.longshore(&["status"]).expect(0);
    // There are one or two processes, and for a moment none: the shell executes its child's
    // command.
    eventually("the command still runs", || {
        !processes_with(&word).is_empty()
    });
    machine.longshore(&["down", "--force"]).expect(0);
    machine.assert_no_process(&word);
}

#[test]
fn packing_is_interrupted_within_one_file_and_leaves_no_temporary_file() {
    let machine = Machine::new();
    // Incompressible data, so that the archive is written to a file, then a file without
    // end.
    let mut noise = vec![0; 8 << 20];
    let mut random = fs::File::open("/dev/urandom").unwrap();
    random.read_exact(&mut noise).unwrap();
    fs::write(machine.code().join("noise"), noise).unwrap();
    let sparse = fs::File::create(machine.code().join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let temporary = machine.code().with_file_name("temporary");
    fs::create_dir(&temporary).unwrap();
    let files = || fs::read_dir(&temporary).unwrap().count();

    let mut command = machine.command(&["run", "--", "true"]);
    command.env("TMPDIR", &temporary);
    let run = Running::start(command);
    eventually("it packs", || files() > 0);
    let signalled = Instant::now();
    run.signal("INT");
    let answer = run.end().expect(130);
    // On an idle machine this takes a thirtieth of the limit.
    assert!(signalled.elapsed() < Duration::from_secs(3));
    assert_eq!(files(), 0);
    let announced = "code    packing 2 files, 1.0 TiB; largest: sparse (1.0 TiB)";
    assert!(answer.err.contains(announced), "{}", answer.err);
}

/// Starts a command at a terminal, and presses Ctrl-C when the task is up.
fn asked(machine: &Machine, script: &str) -> Terminal {
    let mut terminal = Terminal::start(&machine.command(&["run", "--", "sh", "-c", script]));
    terminal.wait_for("up");
    terminal.write("\x03");
    terminal.wait_for("Detach (d) or cancel the run (c)?");
    terminal
}

#[test]
fn a_question_ends_with_the_run() {
    let machine = Machine::new();
    let terminal = asked(&machine, "echo up; sleep 2; echo last");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(
        shown.contains("last") && shown.contains("succeeded"),
        "{shown}"
    );
}

#[test]
fn much_output_passes_an_open_question() {
    let machine = Machine::new();
    // More than the lines that are held back, and than the logs that wait in the client.
    let terminal = asked(&machine, "echo up; sleep 1; seq 200000; echo last");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(
        shown.contains("| 200000") && shown.contains("last"),
        "{}",
        shown.len()
    );
    assert!(shown.matches("Detach (d)").count() > 1);
}

#[test]
fn a_question_is_answered_while_the_run_continues() {
    let machine = Machine::new();
    let mut terminal = asked(&machine, "echo up; sleep 300");
    terminal.write("c\n");
    let (status, shown) = terminal.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert!(shown.contains("was cancelled"), "{shown}");
}
