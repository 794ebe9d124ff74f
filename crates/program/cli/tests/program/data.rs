//! `run --data`: folders and buckets as read-only data of tasks, on the embedded cluster and
//! through a store.

use std::{fs, os::unix::fs::MetadataExt as _, path::PathBuf, process::Command};

use crate::{
    machine::{Answer, Machine, Running, eventually},
    s3::{BUCKET, Fault, S3, SECRET},
};

/// A machine with a data folder in its folder of code.
fn machine() -> Machine {
    let machine = Machine::new();
    let folder = machine.code().join("data/train");
    fs::create_dir_all(&folder).unwrap();
    for index in 0..20 {
        fs::write(folder.join(format!("{index}.txt")), format!("file {index}")).unwrap();
    }
    fs::write(machine.code().join("data/labels.csv"), "a,b\n").unwrap();
    machine
}

/// `longshore run` on the embedded cluster, used like any other cluster: without access to its
/// folder.
fn remotely(machine: &Machine, server: &S3, arguments: &[&str]) -> Command {
    let config = machine.home().join("config");
    if !config.exists() {
        let config = config.display().to_string();
        machine
            .longshore(&["up", "--kubeconfig", &config])
            .expect(0);
    }
    let config = config.display().to_string();
    let mut line = vec!["run", "--kubeconfig", &config];
    line.extend(arguments);
    let mut command = machine.command(&line);
    command.envs(server.settings());
    // The pods find the program, as in an image.
    let program = PathBuf::from(env!("CARGO_BIN_EXE_longshore"));
    let folder = program.parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{folder}:{path}"));
    command
}

fn store() -> String {
    format!("s3://{BUCKET}/team")
}

fn output(mut command: Command) -> Answer {
    Answer::new(&command.output().unwrap())
}

fn count(seen: &[String], method: &str, word: &str) -> usize {
    let is_one = |line: &&String| line.starts_with(method) && line.contains(word);
    seen.iter().filter(is_one).count()
}

/// The number of contents in the store.
fn stored(server: &S3) -> usize {
    let folders = fs::read_dir(server.file("team/data/files"));
    let folders = folders.into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap());
    files.count()
}

#[test]
fn a_folder_is_read_only_and_copied_by_difference() {
    let machine = machine();
    let script = "cat $LONGSHORE_DATA_SET/labels.csv; ls $LONGSHORE_DATA_SET/train | wc -l; \
         ! touch $LONGSHORE_DATA_SET/new 2>&1; ! chmod 600 $LONGSHORE_DATA_SET/labels.csv 2>&1; \
         cat /in/0.txt; ls";
    let arguments = [
        "run",
        "--data",
        "set=data",
        "--data",
        "train=data/train:/in",
        "--",
        "sh",
        "-c",
        script,
    ];
    let first = machine.longshore(&arguments).expect(0);
    for line in ["| a,b", "| 20", "| file 0"] {
        assert!(first.out.contains(line), "{}", first.out);
    }
    assert_eq!(
        first.out.matches("Read-only file system").count(),
        2,
        "{}",
        first.out
    );
    // The data is not a part of the code.
    assert!(first.err.contains("excluded data/"), "{}", first.err);
    assert!(first.err.contains("set: 21 files"), "{}", first.err);
    let again = machine.longshore(&arguments).expect(0);
    assert!(
        again.err.contains("set: already on the node"),
        "{}",
        again.err
    );
    machine.write("data/labels.csv", "c,d,e\n");
    let changed = machine.longshore(&arguments).expect(0);
    assert!(changed.err.contains("set: 6 B copied"), "{}", changed.err);
    assert!(changed.out.contains("| c,d,e"), "{}", changed.out);

    // Other local users have no access to the cluster's folder.
    let folder = machine.data();
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o077, 0);
    let listed = machine
        .longshore(&["data", "list", "--output", "json"])
        .expect(0);
    assert_eq!(listed.json()["data"].as_array().unwrap().len(), 3);
    machine.longshore(&["data", "prune"]).expect(0);
    let listed = machine.longshore(&["data", "list"]).expect(0);
    assert!(listed.out.contains("of ended runs"), "{}", listed.out);
    machine.longshore(&["rm", "--finished"]).expect(0);
    let pruned = machine.longshore(&["data", "prune"]).expect(0);
    assert!(pruned.err.contains("Freed"), "{}", pruned.err);
    let listed = machine
        .longshore(&["data", "list", "--output", "json"])
        .expect(0);
    assert_eq!(listed.json()["bytes"], 0);
}

#[test]
fn data_of_active_runs_is_not_removed() {
    let machine = machine();
    let script = "echo ready; while test ! -e $PWD/../../stop; do sleep 0.1; done";
    machine
        .longshore(&["run", "-d", "--data", "set=data", "--", "sh", "-c", script])
        .expect(0);
    let listed = machine
        .longshore(&["data", "list", "--output", "json"])
        .expect(0);
    let listed = listed.json();
    let sha256 = listed["data"][0]["sha256"].as_str().unwrap();
    assert_eq!(listed["data"][0]["state"], "in use");
    let refused = machine.longshore(&["data", "rm", &sha256[..8]]).expect(1);
    assert!(
        refused.err.contains("active runs use the data"),
        "{}",
        refused.err
    );
    machine.longshore(&["data", "prune", "--all"]).expect(0);
    let path = listed["data"][0]["path"].as_str().unwrap();
    assert!(PathBuf::from(path).join("labels.csv").exists());
    machine.longshore(&["cancel", "last"]).expect(0);
    eventually("the pod has ended", || {
        machine.longshore(&["data", "rm", &sha256[..8]]).code == 0
    });
    assert!(!PathBuf::from(path).exists());
}

#[test]
fn a_folder_reaches_other_clusters_through_the_store_by_difference() {
    let server = S3::start();
    let machine = machine();
    let store = store();
    let script = "cat $LONGSHORE_DATA_SET/labels.csv; ls $LONGSHORE_DATA_SET/train | wc -l; \
         ! touch $LONGSHORE_DATA_SET/new 2>&1; env | grep -c -e AWS_ -e Signature";
    let arguments = [
        "--store", &store, "--data", "set=data", "--", "sh", "-c", script,
    ];
    let first = output(remotely(&machine, &server, &arguments)).expect(1);
    for line in ["| a,b", "| 20", "Read-only file system", "| 0\n"] {
        assert!(first.out.contains(line), "{}\n{}", first.out, first.err);
    }
    let seen = server.seen();
    assert_eq!(count(&seen, "PUT", "/data/files/"), 21, "{seen:#?}");
    machine.write("data/labels.csv", "c,d,e\n");
    let second = output(remotely(&machine, &server, &arguments)).expect(1);
    assert!(second.out.contains("| c,d,e"), "{}", second.out);
    let seen = server.seen();
    assert_eq!(count(&seen, "PUT", "/data/files/"), 1, "{seen:#?}");
    let mut shown = format!("{}{}{}{}", first.out, first.err, second.out, second.err);
    for kind in ["pods", "jobs", "events"] {
        shown += &machine
            .longshore(&["get", kind, "-o", "yaml"])
            .expect(0)
            .out;
    }
    shown += &fs::read_to_string(machine.data().join("cluster.log")).unwrap();
    for secret in ["X-Amz-Signature", SECRET] {
        assert!(!shown.contains(secret), "{secret} is printed");
    }
}

#[test]
fn pods_of_a_node_share_a_cache_and_fetch_each_content_once() {
    let server = S3::start();
    let machine = machine();
    let store = store();
    let cache = machine.home().join("cache");
    let kind = format!("host:{}", cache.display());
    let mut arguments = vec![
        "--store",
        &store,
        "--data",
        "set=data",
        "--data-cache",
        &kind,
        "--role",
        "main=2",
        "--",
    ];
    arguments.extend([
        "sh",
        "-c",
        "cat $LONGSHORE_DATA_SET/labels.csv; ! touch $LONGSHORE_DATA_SET/x",
    ]);
    let answer = output(remotely(&machine, &server, &arguments)).expect(0);
    assert_eq!(answer.out.matches("| a,b").count(), 2, "{}", answer.out);
    // The client sends one more request, to check that the URLs can be read.
    let seen = server.seen();
    assert_eq!(count(&seen, "GET", "/data/files/"), 22, "{seen:#?}");
    output(remotely(&machine, &server, &arguments)).expect(0);
    let seen = server.seen();
    assert_eq!(count(&seen, "GET", "/data/files/"), 1, "{seen:#?}");
    arguments.splice(4..6, ["--data-cache", "host:relative"]);
    let answer = output(remotely(&machine, &server, &arguments)).expect(2);
    assert!(answer.err.contains("host:/absolute/path"), "{}", answer.err);
}

#[test]
fn pods_share_a_cache_in_a_claim() {
    let server = S3::start();
    let machine = machine();
    let store = store();
    output(remotely(&machine, &server, &["--", "true"])).expect(0);
    machine.write(
        "claim.yaml",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: cache, namespace: default}\n\
         spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}\n",
    );
    machine.longshore(&["create", "-f", "claim.yaml"]).expect(0);
    let script = "cat $LONGSHORE_DATA_SET/labels.csv";
    let arguments = [
        "--store",
        &store,
        "--data",
        "set=data",
        "--data-cache",
        "claim:cache",
        "--",
        "sh",
        "-c",
        script,
    ];
    for requests in [22, 1] {
        let answer = output(remotely(&machine, &server, &arguments)).expect(0);
        assert!(answer.out.contains("| a,b"), "{}", answer.out);
        let seen = server.seen();
        assert_eq!(count(&seen, "GET", "/data/files/"), requests, "{seen:#?}");
    }
}

#[test]
fn damaged_contents_are_not_used_and_why_says_so() {
    let server = S3::start();
    let machine = machine();
    let store = store();
    let arguments = [
        "--store", &store, "--data", "set=data", "--", "echo", "it", "runs",
    ];
    output(remotely(&machine, &server, &arguments)).expect(0);
    let files = server.file("team/data/files");
    let folders = fs::read_dir(files).unwrap().flatten();
    let mut contents = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten());
    let content = contents.next().unwrap().path();
    let size = fs::metadata(&content).unwrap().len();
    fs::write(&content, vec![0; usize::try_from(size).unwrap()]).unwrap();
    let answer = output(remotely(&machine, &server, &arguments)).expect(4);
    assert!(!answer.out.contains("it runs"), "{}", answer.out);
    assert!(
        answer
            .err
            .contains("the data of the task could not be fetched"),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("is damaged"), "{}", answer.err);
    let why = machine.longshore(&["why", "last"]).expect(0);
    assert!(why.out.contains("is damaged"), "{}", why.out);
    // After the suggested remedy, it runs again.
    fs::remove_file(content).unwrap();
    output(remotely(&machine, &server, &arguments)).expect(0);
}

#[test]
fn an_interrupted_upload_continues_with_the_missing_files() {
    let server = S3::start();
    let machine = machine();
    let store = store();
    let arguments = ["--store", &store, "--data", "set=data", "--", "true"];
    // The connections of some files stay without a response.
    server.fail(
        "PUT /bundles-of-tests/team/data/files",
        &[Fault::Answer(403)],
    );
    let refused = output(remotely(&machine, &server, &arguments)).expect(4);
    assert!(refused.err.contains("denies access"), "{}", refused.err);
    assert!(count(&server.seen(), "PUT", "/data/files/") > 0);
    let runs = machine.longshore(&["runs", "--output", "json"]).expect(0);
    assert_eq!(
        runs.json().as_array().map(Vec::len),
        Some(0),
        "nothing was created"
    );
    // The number of contents depends on how many were sent before the refusal was received.
    let missing = || 21 - stored(&server);
    let waiting = missing().min(8);
    assert!(waiting > 0);
    server.fail(
        "PUT /bundles-of-tests/team/data/files",
        &vec![Fault::Silence; waiting],
    );
    let running = Running::start(remotely(&machine, &server, &arguments));
    eventually("all connections wait", || server.faults() == 0);
    running.signal("KILL");
    drop(running);
    assert!(count(&server.seen(), "PUT", "/data/files/") >= waiting);
    // The silent requests of the killed process and the refused request stored nothing.
    let missing = missing();
    assert!(missing >= waiting, "{missing} of {waiting}");
    output(remotely(&machine, &server, &arguments)).expect(0);
    assert_eq!(count(&server.seen(), "PUT", "/data/files/"), missing);
    output(remotely(&machine, &server, &arguments)).expect(0);
    assert_eq!(count(&server.seen(), "PUT", "/data/files/"), 0);
}

#[test]
fn buckets_are_data_on_every_cluster() {
    let server = S3::start();
    let machine = machine();
    let models = server.file("models/small");
    fs::create_dir_all(&models).unwrap();
    fs::write(models.join("weights.bin"), "weights").unwrap();
    let data = format!("models=s3://{BUCKET}/models:/models");
    let task = ["--data", &data, "--", "cat", "/models/small/weights.bin"];
    let here: Vec<&str> = ["run"].into_iter().chain(task).collect();
    let mut here = machine.command(&here);
    here.envs(server.settings());
    let answer = output(here).expect(0);
    assert!(answer.out.contains("| weights"), "{}", answer.out);
    // Without a store, the list of URLs is in the Secret of the run.
    let answer = output(remotely(&machine, &server, &task)).expect(0);
    assert!(
        answer.out.contains("| weights"),
        "{}\n{}",
        answer.out,
        answer.err
    );
    fs::write(models.join("weights.bin"), "changed").unwrap();
    let answer = output(remotely(&machine, &server, &task)).expect(0);
    assert!(answer.out.contains("| changed"), "{}", answer.out);
    let nothing = format!("models=s3://{BUCKET}/nothing");
    let answer = output(remotely(
        &machine,
        &server,
        &["--data", &nothing, "--", "true"],
    ));
    let answer = answer.expect(4);
    assert!(answer.err.contains("has no objects"), "{}", answer.err);
}

#[test]
fn what_cannot_be_data_is_reported_before_anything_is_created() {
    let server = S3::start();
    let machine = machine();
    let refused = |arguments: &[&str], problem: &str| {
        let answer = machine.longshore(&[&["run"], arguments, &["--", "true"]].concat());
        assert!(matches!(answer.code, 2 | 4), "{}", answer.err);
        assert!(answer.err.contains(problem), "{}", answer.err);
    };
    refused(&["--data", "set=missing"], "missing does not exist");
    refused(
        &["--data", "set=data/labels.csv"],
        "is a file, not a folder",
    );
    refused(&["--data", "set"], "write NAME=SOURCE");
    refused(&["--data", "set=data:/longshore/x"], "reserved");
    let answer = output(remotely(
        &machine,
        &server,
        &["--data", "set=data", "--", "true"],
    ));
    let answer = answer.expect(4);
    assert!(
        answer.err.contains("need a store for the data \"set\""),
        "{}",
        answer.err
    );
    let store = store();
    let cron = [
        "--store",
        &store,
        "--cron",
        "0 3 * * *",
        "--no-code",
        "--data",
        "set=data",
        "--",
        "true",
    ];
    let answer = output(remotely(&machine, &server, &cron));
    assert!(answer.code != 0, "{}", answer.err);
    machine.write(
        "longshore.toml",
        &format!(
            "[data]\nset = {{source = 'data', pin = '{}'}}\n",
            "0".repeat(64)
        ),
    );
    refused(&[], "it has changed");
    let dry = machine.longshore(&["run", "--dry-run", "--data", "set=data", "--", "true"]);
    let dry = dry.expect(0);
    assert!(dry.out.contains("longshore.dev/data"), "{}", dry.out);
    assert!(
        !machine.data().join("data").exists(),
        "a dry run copies nothing"
    );
}
