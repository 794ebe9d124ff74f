//! `run --store s3://…`: code uploaded to an S3 server that checks signatures, and
//! downloaded by pods without credentials.

use std::{
    fs,
    io::{Read, Write},
};

use crate::{
    machine::{Answer, Machine, Running, eventually},
    s3::{BUCKET, Fault, S3, SECRET},
};

/// Two parts and a remainder.
const SIZE: usize = (16 << 20) + 1000;
/// Prints the size of the file, and how many of the store's variables the pod has.
const INSPECT: &str = "wc -c < data; env | grep -c -e AWS_ -e Signature";

/// A machine whose code folder has an incompressible file.
fn machine(bytes: usize) -> Machine {
    let machine = Machine::new();
    let mut data = vec![0; bytes];
    let mut random = fs::File::open("/dev/urandom").unwrap();
    random.read_exact(&mut data).unwrap();
    let mut file = fs::File::create(machine.code().join("data")).unwrap();
    file.write_all(&data).unwrap();
    machine
}

/// `longshore run` with the store's variables; `more` overrides them.
fn run(machine: &Machine, server: &S3, others: &[(&str, &str)], arguments: &[&str]) -> Answer {
    Answer::new(
        &command(machine, server, others, arguments)
            .output()
            .unwrap(),
    )
}

fn command(
    machine: &Machine,
    server: &S3,
    others: &[(&str, &str)],
    arguments: &[&str],
) -> std::process::Command {
    let store = format!("s3://{BUCKET}/team");
    let mut line = vec!["run", "--name", "job", "--store", &store];
    line.extend(arguments);
    let mut command = machine.command(&line);
    command.envs(server.settings()).envs(others.iter().copied());
    command
}

/// The only bundle in the store.
fn bundle(server: &S3) -> std::path::PathBuf {
    let mut found = fs::read_dir(server.file("team/bundles")).unwrap();
    found.next().unwrap().unwrap().path()
}

fn count(seen: &[String], word: &str) -> usize {
    seen.iter().filter(|line| line.contains(word)).count()
}

#[test]
fn code_is_uploaded_once_in_parts_and_downloaded_without_credentials() {
    let server = S3::start();
    let machine = machine(SIZE);
    machine.longshore(&["up"]).expect(0);
    let first = run(&machine, &server, &[], &["--", "sh", "-c", INSPECT]).expect(1);
    assert!(first.out.contains(&format!("| {SIZE}\n")), "{}", first.out);
    assert!(first.out.contains("| 0\n"), "{}", first.out);
    assert!(
        first
            .err
            .contains(&format!("store   s3://{BUCKET}/team: 16 MiB sent")),
        "{}",
        first.err
    );
    let seen = server.seen();
    assert_eq!(count(&seen, "partNumber="), 3, "{seen:#?}");
    // The client checks for the bundle, the pod downloads it.
    assert_eq!(count(&seen, "GET "), 2, "{seen:#?}");

    let verbose = [("LONGSHORE_LOG", "trace")];
    let second = run(
        &machine,
        &server,
        &verbose,
        &["--role", "main=2", "--", "true"],
    )
    .expect(0);
    assert!(second.err.contains("already uploaded"), "{}", second.err);
    assert!(second.err.contains("TRACE"), "{}", second.err);
    let seen = server.seen();
    let sent = count(&seen, "PUT ") + count(&seen, "POST ");
    assert_eq!(sent, 0, "{seen:#?}");
    assert_eq!(count(&seen, "GET "), 3, "{seen:#?}");

    // The signed URL is only in the Secrets of the runs.
    let mut shown = format!("{}{}{}{}", first.out, first.err, second.out, second.err);
    for kind in ["pods", "jobs", "events", "services"] {
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
fn pods_of_an_automatic_cluster_have_no_credentials() {
    let server = S3::start();
    let machine = machine(1000);
    let answer = run(&machine, &server, &[], &["--", "sh", "-c", INSPECT]).expect(1);
    assert!(answer.out.contains("| 1000\n"), "{}", answer.out);
    assert!(answer.out.contains("| 0\n"), "{}", answer.out);
}

#[test]
fn an_overwritten_bundle_is_not_run() {
    let server = S3::start();
    let machine = machine(1000);
    run(&machine, &server, &[], &["--", "true"]).expect(0);
    let file = bundle(&server);
    let size = fs::metadata(&file).unwrap().len();
    fs::write(&file, vec![0; usize::try_from(size).unwrap()]).unwrap();
    let answer = run(&machine, &server, &[], &["--", "echo", "it", "runs"]).expect(4);
    assert!(!answer.out.contains("it runs"), "{}", answer.out);
    let output = format!("{}{}", answer.out, answer.err);
    assert!(output.contains("is damaged: its sha256 is"), "{output}");
    assert!(output.contains("delete it from the store"), "{output}");
    // After the suggested remedy, it runs again.
    fs::remove_file(file).unwrap();
    run(&machine, &server, &[], &["--", "true"]).expect(0);
}

#[test]
fn a_rejection_by_the_store_is_reported_before_anything_is_created() {
    let server = S3::start();
    let machine = machine(1000);
    let wrong = [("AWS_SECRET_ACCESS_KEY", "hush-wrong")];
    let answer = run(&machine, &server, &wrong, &["--", "true"]).expect(4);
    assert!(
        answer.err.contains("denies access: SignatureDoesNotMatch"),
        "{}",
        answer.err
    );
    assert!(
        answer.err.contains("AWS_SECRET_ACCESS_KEY"),
        "{}",
        answer.err
    );
    assert!(!answer.err.contains("hush"), "{}", answer.err);

    let elsewhere = ["--store", "s3://no-such-bucket", "--", "true"];
    let mut command = machine.command(&["run"]);
    command.args(elsewhere).envs(server.settings());
    let answer = Answer::new(&command.output().unwrap()).expect(4);
    assert!(
        answer
            .err
            .contains("the store s3://no-such-bucket does not exist"),
        "{}",
        answer.err
    );
    let answer = machine.longshore(&["run", "--store", "ftp://x", "--", "true"]);
    let answer = answer.expect(2);
    assert!(
        answer.err.contains("az://container/prefix"),
        "{}",
        answer.err
    );
    // The cluster received dry runs only, and stores nothing.
    for kind in ["jobs", "secrets", "services"] {
        let left = machine.longshore(&["get", kind, "--output", "name"]);
        let left = left.expect(0).out;
        let left: Vec<&str> = left
            .lines()
            .filter(|name| !name.contains("kubernetes"))
            .collect();
        assert_eq!(left, [""; 0], "{kind}");
    }
}

#[test]
fn code_of_a_rejected_run_is_not_uploaded() {
    let server = S3::start();
    let machine = machine(1000);
    let more = ["--namespace", "nowhere", "--", "true"];
    let answer = run(&machine, &server, &[], &more).expect(4);
    assert!(answer.err.contains("nowhere"), "{}", answer.err);
    assert_eq!(server.seen(), [""; 0]);
}

#[test]
fn a_dry_run_sends_no_request_to_the_store_and_prints_no_signature() {
    let server = S3::start();
    let machine = machine(SIZE);
    let answer = run(&machine, &server, &[], &["--dry-run", "--", "true"]).expect(0);
    assert!(answer.out.contains("kind: Job"), "{}", answer.out);
    assert!(!answer.out.contains("name: bundle"), "{}", answer.out);
    assert_eq!(server.seen(), [""; 0]);
}

#[test]
fn an_interrupted_upload_is_aborted() {
    let server = S3::start();
    let machine = machine(SIZE);
    server.fail("partNumber=2", &[Fault::Silence]);
    let run = Running::start(command(&machine, &server, &[], &["--", "true"]));
    eventually("a part is being uploaded", || server.faults() == 0);
    run.signal("INT");
    run.end().expect(130);
    assert_eq!(count(&server.seen(), "DELETE"), 1);
    assert_eq!(server.leftovers(), [""; 0]);
    assert_eq!(journals(&machine), [""; 0]);
    machine.longshore(&["status"]).expect(3);
}

/// The upload journals on the machine.
fn journals(machine: &Machine) -> Vec<String> {
    let folder = machine.home().join(".cache/longshore/uploads");
    let files = fs::read_dir(folder).into_iter().flatten();
    files
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

#[test]
fn a_killed_upload_resumes() {
    let server = S3::start();
    let machine = machine(SIZE);
    machine.longshore(&["up"]).expect(0);
    server.fail("partNumber=2", &[Fault::Silence]);
    let killed = Running::start(command(&machine, &server, &[], &["--", "true"]));
    // The requests: one that starts the upload, and two parts.
    eventually("all parts but one have arrived", || {
        journals(&machine)
            .iter()
            .any(|text| text.lines().count() == 3)
    });
    killed.signal("KILL");
    killed.end();
    let seen = server.seen();
    assert_eq!(count(&seen, "partNumber="), 3, "{seen:#?}");

    let more = ["--", "sh", "-c", INSPECT];
    let again = run(&machine, &server, &[], &more).expect(1);
    let news = "16 MiB sent (8.0 MiB by an earlier attempt)";
    assert!(again.err.contains(news), "{}", again.err);
    assert!(again.out.contains(&format!("| {SIZE}\n")), "{}", again.out);
    let seen = server.seen();
    assert_eq!(count(&seen, "partNumber="), 1, "{seen:#?}");
    assert_eq!(count(&seen, "partNumber=2"), 1, "{seen:#?}");
    assert_eq!(journals(&machine), [""; 0]);
    assert_eq!(server.leftovers(), [""; 0]);
}
