//! `longshore dev --run`: changes are sent to a run that an earlier `longshore dev` has started.

use std::{fs, time::Duration};

use crate::{
    dev::dev,
    machine::{Machine, eventually, unique_word},
};

fn pods(machine: &Machine) -> String {
    let words = ["get", "pods", "-o", "name"];
    machine.longshore(&words).expect(0).out
}

#[test]
fn a_session_that_was_killed_is_continued_by_another() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let word = unique_word();
    machine.write("lib.sh", "VERSION=1\n");
    machine.write("old.txt", "old\n");
    let script = format!(
        ". ./lib.sh\necho kept > made-$VERSION\necho version $VERSION in $$ $(ls | tr '\\n' ' ')\nsleep 300 & : {word}\nwait\n"
    );
    machine.write("train.sh", &script);
    machine.write("data.bin", &"x".repeat(2 << 20));
    let arguments = ["--ignore", "*.tmp", "--", "sh", "train.sh", &word];
    let (running, output) = dev(&machine, &arguments);
    output.see("main/0 | version 1 in ");
    let pod = pods(&machine);
    running.signal("KILL");
    running.end();

    // Files change while no session is attached. Only those are sent.
    machine.write("lib.sh", "VERSION=2\n");
    machine.write("more.txt", "more");
    machine.write("ignored.tmp", "");
    fs::remove_file(machine.code().join("old.txt")).unwrap();
    let (mut running, output) = dev(&machine, &["--run", "last"]);
    running.wait_for_error(
        "changed: lib.sh, more.txt, old.txt removed (3 files, 14 B); restarted in ",
    );
    let files = "data.bin lib.sh made-1 made-2 more.txt train.sh";
    output.see_all(&["version 1 in ", "version 2 in ", files]);
    assert_eq!(pods(&machine), pod);
    machine.write("lib.sh", "VERSION=3\n");
    running.wait_for_error("changed: lib.sh (1 file, 10 B); restarted in ");
    output.see("version 3 in ");
    running.signal("KILL");
    running.end();

    // Nothing has changed: the command continues, and the end of its log is shown.
    let (mut running, output) = dev(&machine, &["--run", "last", "--tail", "1"]);
    running.wait_for_error("no file has changed, so no command was restarted");
    output.see("version 3 in ");
    std::thread::sleep(Duration::from_millis(500));
    assert!(output.0.try_recv().is_err());

    // Another session takes over. The first ends.
    let (mut second, output) = dev(&machine, &["--run", "last", "--tail", "0", "--restart-now"]);
    second.wait_for_error(" restarted in 0.");
    output.see("version 3 in ");
    running.wait_for_error("another `longshore dev` has attached to the run");
    let answer = running.end().expect(1);
    assert!(
        answer.err.contains("continues: `longshore dev --run"),
        "{}",
        answer.err
    );
    machine.write("lib.sh", "VERSION=4\n");
    output.see("version 4 in ");
    assert_eq!(pods(&machine), pod);
    second.signal("INT");
    second.end().expect(130);
    machine.assert_no_process(&word);
}

#[test]
fn a_pod_that_was_replaced_gets_the_current_files() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("version", "1\n");
    machine.write(
        "longshore.toml",
        "ignore = ['longshore.toml']\n[roles.worker]\ncount = 2\n",
    );
    let script = "echo $LONGSHORE_INDEX has $(cat version); exec sleep 300";
    let (running, output) = dev(&machine, &["--", "sh", "-c", script]);
    output.see_all(&["0 has 1", "1 has 1"]);
    machine.write("version", "2\n");
    output.see_all(&["0 has 2", "1 has 2"]);
    running.signal("KILL");
    running.end();
    let found = pods(&machine);
    let worker = found.lines().find(|pod| pod.contains("worker-1")).unwrap();
    let delete = ["delete", worker, "--grace-period", "0"];
    machine.longshore(&delete).expect(0);
    machine.write("version", "3\n");
    eventually("the pod is replaced", || {
        let now = pods(&machine);
        now.lines().count() == 2 && !now.contains(worker)
    });
    // The command may have written the line before its log is read.
    let (running, output) = dev(&machine, &["--run", "last", "--tail", "1"]);
    // The new pod has waited for a client: its command never runs old code.
    output.see_all(&["0 has 3", "1 has 3"]);
    running.signal("INT");
    running.end().expect(130);
}

#[test]
fn runs_to_which_dev_cannot_attach_are_refused() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("a", "");
    let words = ["run", "--name", "plain", "-d", "--", "sleep", "300"];
    let plain = machine.longshore(&words).expect(0).out.trim().to_owned();
    let refused = |arguments: &[&str], code, problem: &str| {
        let words = [&["dev"], arguments].concat();
        let answer = machine.longshore(&words).expect(code);
        assert!(answer.err.contains(problem), "{}", answer.err);
        answer.err
    };
    let error = refused(&["--run", &plain], 1, "was not started by `longshore dev`");
    assert!(
        error.contains(&format!("longshore attach {plain}")),
        "{error}"
    );
    refused(&["--run", "nothing"], 1, "no run \"nothing\"");
    refused(&["--run", &plain, "--", "true"], 2, "cannot be used with");
    refused(&["--run", &plain, "--env", "A=1"], 2, "cannot be used with");
    refused(&["--restart-now", "--", "true"], 2, "add --run RUN");
    refused(&["--tail", "1", "--", "true"], 2, "add --run RUN");

    let words = [
        "--ignore",
        "*.tmp",
        "--ignore",
        "!keep.tmp",
        "--",
        "sleep",
        "300",
    ];
    let (running, _output) = dev(&machine, &words);
    let running = {
        let mut running = running;
        running.wait_for_error("each change in . restarts the command");
        running
    };
    running.signal("KILL");
    running.end();
    let error = refused(&["--run", "last"], 2, "patterns that include ignored files");
    assert!(error.contains("--ignore \"!keep.tmp\""), "{error}");
    // Another folder would replace the files of the tasks.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = machine.command(&["dev", "--run", "last"]);
    command.current_dir(elsewhere.path());
    let answer = crate::machine::Answer::new(&command.output().unwrap()).expect(2);
    assert!(answer.err.contains("was started from"), "{}", answer.err);

    machine.longshore(&["cancel", "last"]).expect(0);
    refused(&["--run", "last"], 1, "has ended (cancelled)");
}
