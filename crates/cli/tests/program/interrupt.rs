//! Ctrl-C.

use crate::desk::{Desk, Running, eventually, processes_with, unique_word};

fn started(desk: &Desk, on_interrupt: &str) -> (Running, String) {
    let word = unique_word();
    // The word stands in the task's arguments, and no file of its own.
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
    let run = Running::start(desk.command(&arguments));
    // The desk's command has the word among its arguments, too.
    eventually("the task runs", || {
        processes_with(&word)
            .iter()
            .any(|arguments| arguments.starts_with("sh -c"))
    });
    (run, word)
}

#[test]
fn without_a_terminal_it_cancels_the_run() {
    let desk = Desk::new();
    let (run, word) = started(&desk, "ask");
    run.signal("INT");
    let answer = run.end().expect(130);
    assert!(answer.err.contains("cancelled"), "{}", answer.err);
    desk.assert_no_process(&word);
    desk.longshore(&["status"]).expect(3);
}

#[test]
fn a_request_to_terminate_cancels_the_run() {
    let desk = Desk::new();
    let (run, word) = started(&desk, "cancel");
    run.signal("TERM");
    run.end().expect(130);
    desk.assert_no_process(&word);
}

#[test]
fn it_can_be_told_to_leave_the_run_alone() {
    let desk = Desk::new();
    let (run, word) = started(&desk, "detach");
    run.signal("INT");
    run.end().expect(130);
    desk.longshore(&["status"]).expect(0);
    // One or two, or at a moment none: while the shell becomes its child's command.
    eventually("the command goes on", || !processes_with(&word).is_empty());
    desk.longshore(&["down"]).expect(0);
    desk.assert_no_process(&word);
}
