//! Code bundles in the embedded cluster, and their removal.

use std::{fs, io::Read as _, os::unix::fs::MetadataExt as _, path::PathBuf};

use crate::machine::{Answer, Machine, eventually};

const SIZE: u64 = 2 << 20;

/// A machine with code that is larger than a Secret can hold.
fn machine() -> Machine {
    machine_of(SIZE)
}

fn machine_of(size: u64) -> Machine {
    let machine = Machine::new();
    let mut data = Vec::new();
    let random = fs::File::open("/dev/urandom").unwrap();
    random.take(size).read_to_end(&mut data).unwrap();
    fs::write(machine.code().join("data"), data).unwrap();
    machine
}

fn run(machine: &Machine, name: &str, more: &[&str], script: &str) -> Answer {
    let mut line = vec!["run", "--name", name];
    line.extend(more);
    line.extend(["--", "sh", "-c", script]);
    machine.longshore(&line)
}

fn bundles(machine: &Machine) -> Vec<PathBuf> {
    let entries = fs::read_dir(machine.data().join("bundles/bundles"));
    let entries = entries.into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Bytes of the bundles and of the pods' volumes, from `status`.
fn used(machine: &Machine) -> (u64, u64) {
    let code = &machine.status()["code"];
    let bytes = |part: &str| code[part]["bytes"].as_u64().unwrap();
    (bytes("bundles"), bytes("podVolumes"))
}

#[test]
fn a_bundle_is_deleted_with_its_last_run_and_a_finished_run_has_no_volumes() {
    let machine = machine();
    machine.longshore(&["up"]).expect(0);
    run(&machine, "one", &[], "cat data | wc -c").expect(0);
    run(&machine, "two", &[], "test -e data").expect(0);
    assert_eq!(bundles(&machine).len(), 1);
    let status = machine.status();
    let code = &status["code"];
    assert_eq!(
        (&code["bundles"]["count"], &code["overLimit"]),
        (&1.into(), &false.into())
    );
    assert!(used(&machine).0 > SIZE);
    eventually("the volumes are deleted", || used(&machine).1 == 0);
    // The output remains.
    let log = machine.longshore(&["logs", "one"]).expect(0);
    assert!(log.out.contains(&SIZE.to_string()), "{}", log.out);

    let removed = machine.longshore(&["rm", "one"]).expect(0);
    assert!(!removed.err.contains("Freed"), "{}", removed.err);
    assert_eq!(bundles(&machine).len(), 1, "the other run uses it");
    let removed = machine.longshore(&["rm", "two"]).expect(0);
    assert!(
        removed.err.contains("Freed 2.0 MiB of code."),
        "{}",
        removed.err
    );
    assert!(bundles(&machine).is_empty());
    assert_eq!(used(&machine).0, 0);
    // The same code is sent again.
    run(&machine, "three", &[], "test -e data").expect(0);
}

#[test]
fn the_bundle_of_an_active_run_is_deleted_after_its_pods() {
    let machine = machine();
    machine.longshore(&["up"]).expect(0);
    let script = "trap 'sleep 1; exit 0' TERM; while :; do sleep 0.1; done";
    run(&machine, "job", &["--detach"], script).expect(0);
    let running = || machine.longshore(&["runs"]).out.contains("running");
    eventually("it runs", running);
    let removed = machine.longshore(&["rm", "last", "--force"]).expect(0);
    let later = "2.0 MiB of code will be freed when the pods have ended.";
    assert!(removed.err.contains(later), "{}", removed.err);
    eventually("the bundle is deleted", || bundles(&machine).is_empty());
}

#[test]
fn limits_persist_and_active_runs_keep_bundles_beyond_them() {
    let machine = machine();
    let up = machine.longshore(&["up", "--code-limit", "0"]).expect(2);
    assert!(up.err.contains("--code-limit"), "{}", up.err);
    let up = ["up", "--kept-logs-limit", "99999999999999999999Gi"];
    let refused = machine.longshore(&up).expect(2).err;
    assert!(refused.contains("a size is less than 8Pi"), "{refused}");
    machine.longshore(&["up", "--code-limit", "1Mi"]).expect(0);
    run(
        &machine,
        "job",
        &["--detach"],
        "while :; do sleep 0.1; done",
    )
    .expect(0);
    let status = machine.status();
    assert_eq!(status["code"]["configuredLimitBytes"], 1 << 20);
    assert_eq!(status["code"]["overLimit"], true);
    let text = machine.longshore(&["status"]).expect(0).out;
    let over = "1 bundle, 2.0 MiB; more than the limit of 1.0 MiB: active runs need them";
    assert!(text.contains(over), "{text}");
    let words = ["up", "--kept-logs-limit", "5Mi"];
    machine.longshore(&words).expect(0);
    let text = machine.longshore(&["status"]).expect(0).out;
    assert!(text.contains("of deleted pods; limit 5.0 MiB"), "{text}");
    machine.longshore(&["down", "--force"]).expect(0);
    machine.longshore(&["up"]).expect(0);
    let status = machine.status();
    assert_eq!(status["code"]["configuredLimitBytes"], 1 << 20);
    assert_eq!(status["keptLogs"]["configuredLimitBytes"], 5 << 20);
    machine.longshore(&["up", "--code-limit", "3Gi"]).expect(0);
    assert_eq!(
        machine.status()["code"]["configuredLimitBytes"],
        3_u64 << 30
    );
}

#[test]
fn small_bundles_are_deleted_with_their_runs_and_stores_are_kept() {
    let machine = Machine::new();
    machine.write("train.py", "print()");
    machine.longshore(&["up"]).expect(0);
    run(&machine, "small", &[], "true").expect(0);
    let secrets = || {
        machine
            .longshore(&["get", "secrets", "--output", "name"])
            .out
    };
    assert!(secrets().contains("longshore-bundle-"), "{}", secrets());
    let removed = machine.longshore(&["rm", "small"]).expect(0);
    assert!(!removed.err.contains("stores"), "{}", removed.err);
    eventually("the Secret is deleted", || {
        !secrets().contains("longshore-bundle-")
    });

    let store = format!("file://{}", machine.home().join("shared").display());
    run(&machine, "stored", &["--store", &store], "true").expect(0);
    let removed = machine.longshore(&["rm", "stored"]).expect(0);
    let left = "Code in stores was not removed, since other runs may use it: ";
    assert!(removed.err.contains(left), "{}", removed.err);
    let mut left = fs::read_dir(machine.home().join("shared/bundles")).unwrap();
    assert!(left.next().is_some());
}

fn copies(machine: &Machine) -> u64 {
    machine.status()["code"]["readyCopies"]["count"]
        .as_u64()
        .unwrap()
}

fn ready(machine: &Machine) {
    eventually("a copy is ready", || copies(machine) == 1);
}

/// The inode of a file in the ready copy.
fn inode_of_copy(machine: &Machine) -> u64 {
    let boots = fs::read_dir(machine.data().join("bundles/ready")).unwrap();
    let boot = boots.flatten().next().unwrap().path();
    let mut copies = fs::read_dir(boot).unwrap().flatten();
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    let copy = copies.find(|entry| !name(entry)).unwrap().path();
    fs::metadata(copy.join("data")).unwrap().ino()
}

/// Returns the number of times that a number is a word of the text.
fn count(text: &str, number: u64) -> usize {
    let number = number.to_string();
    text.split_whitespace()
        .filter(|word| *word == number)
        .count()
}

#[test]
fn a_second_run_of_the_same_code_uses_a_ready_copy() {
    let machine = machine_of(9 << 20);
    machine.longshore(&["up"]).expect(0);
    let script = "stat -c %i data; ls -A ..; echo changed > data";
    let first = run(&machine, "one", &[], script).expect(0);
    assert!(!first.out.contains(".ready-copy"), "{}", first.out);
    ready(&machine);
    let inode = inode_of_copy(&machine);
    let text = machine.longshore(&["status"]).expect(0).out;
    assert!(
        text.contains("1 bundle, 9.0 MiB, unpacked for the next run 9.0 MiB; limit"),
        "{text}"
    );

    let second = run(&machine, "two", &[], script).expect(0);
    assert!(
        count(&second.out, inode) == 1,
        "{inode} {} {}",
        second.out,
        second.err
    );
    assert!(!second.out.contains(".ready-copy"), "{}", second.out);
    // The next copy is unpacked from the bundle: it does not contain a task's changes.
    ready(&machine);
    let third = run(&machine, "three", &[], "wc -c < data").expect(0);
    assert!(third.out.contains(&(9 << 20).to_string()), "{}", third.out);

    ready(&machine);
    let removed = machine
        .longshore(&["rm", "--finished", "--force"])
        .expect(0);
    assert!(
        removed.err.contains("Freed 18 MiB of code."),
        "{}",
        removed.err
    );
    assert_eq!((copies(&machine), used(&machine).0), (0, 0));
}

#[test]
fn each_pod_has_its_own_copy_of_the_code() {
    let machine = machine_of(9 << 20);
    machine.write("longshore.toml", "[roles.main]\ncount = 3\n");
    machine.longshore(&["up"]).expect(0);
    run(&machine, "one", &[], "true").expect(0);
    ready(&machine);
    let inode = inode_of_copy(&machine);
    // Each task writes, waits until the others have written, and reads.
    let script = "echo $LONGSHORE_INDEX > data; stat -c %i data; sleep 2; echo found $(cat data) of $LONGSHORE_INDEX";
    let all = run(&machine, "many", &[], script).expect(0);
    for index in 0..3 {
        let found = format!("found {index} of {index}");
        assert!(all.out.contains(&found), "{}", all.out);
    }
    assert_eq!(count(&all.out, inode), 1, "{inode} {}", all.out);
}

#[test]
fn a_killed_cluster_leaves_no_partial_copy() {
    let machine = machine_of(9 << 20);
    machine.longshore(&["up"]).expect(0);
    run(&machine, "one", &[], "true").expect(0);
    ready(&machine);
    crate::machine::signal(machine.pid().unwrap(), "KILL");
    eventually("the cluster has died", || machine.pid().is_none());
    // Creates what a kill during the next copy would leave.
    let boots = fs::read_dir(machine.data().join("bundles/ready")).unwrap();
    let half = boots.flatten().next().unwrap().path().join(".tmpHalf");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("data"), "half").unwrap();
    machine.longshore(&["up"]).expect(0);
    eventually("the partial copy is deleted", || !half.exists());
    // The complete copy is still used.
    let inode = inode_of_copy(&machine);
    let second = run(&machine, "two", &[], "stat -c %i data; wc -c < data").expect(0);
    assert!(count(&second.out, inode) == 1, "{inode} {}", second.out);
    assert!(
        second.out.contains(&(9 << 20).to_string()),
        "{}",
        second.out
    );
}
