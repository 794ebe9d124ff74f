//! `longshore dev` whose own output is a file in the folder.

use std::{
    fs::{self, File},
    process::Stdio,
    time::Duration,
};

use crate::machine::{Machine, Running, eventually};

/// Starts `longshore dev` by a shell script, and checks that only edits restart the command.
fn assert_only_edits_restart(name: &str, script: &str) {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("a.txt", "1\n");
    let program = env!("CARGO_BIN_EXE_longshore");
    let script = script.replace(
        "DEV",
        &format!("'{program}' dev -- sh -c 'echo version; cat a.txt; sleep 300'"),
    );
    let mut command = machine.shell(&script);
    command
        .stdin(Stdio::null())
        .stdout(File::create("/dev/null").unwrap());
    let running = Running::start(command);
    let log = machine.code().join(name);
    let text = || fs::read_to_string(&log).unwrap_or_default();
    let starts = || text().matches("| version").count();
    eventually("the command starts", || starts() == 1);
    eventually("the file is recognized", || {
        text().contains(&format!("{name} contains the output of this command"))
    });
    // Long enough for several restarts.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(starts(), 1, "{}", text());
    machine.write("a.txt", "2\n");
    eventually("an edit restarts the command", || {
        text().contains("main/0 | 2")
    });
    assert_eq!(starts(), 2, "{}", text());
    assert_eq!(
        text().matches("contains the output").count(),
        1,
        "{}",
        text()
    );
    machine.longshore(&["cancel", "last"]).expect(0);
    running.end();
}

#[test]
fn its_standard_error_in_the_folder_is_not_a_change() {
    assert_only_edits_restart("dev.log", "exec DEV > dev.log 2>&1");
}

#[test]
fn a_copy_of_its_output_is_not_a_change() {
    assert_only_edits_restart("copy.log", "DEV 2>&1 | tee copy.log");
}
