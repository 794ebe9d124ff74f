//! Webhooks that a pod of the cluster calls when a run ends or is stuck.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use serde_json::Value;

use crate::{
    machine::{Machine, Running},
    schedules::make_due,
};

/// The timeout for a message.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that refuses the first messages, and what it received.
pub(crate) struct Server {
    pub(crate) url: String,
    received: Receiver<(u16, Value)>,
}

impl Server {
    /// The statuses of the first responses; further responses have 200.
    pub(crate) fn start(first: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/runs", listener.local_addr().unwrap());
        let (sender, received) = channel();
        std::thread::spawn(move || {
            let mut statuses = first.iter().copied();
            for socket in listener.incoming() {
                let status = statuses.next().unwrap_or(200);
                let body = answer(socket.unwrap(), status);
                if sender.send((status, body)).is_err() {
                    return;
                }
            }
        });
        Self { url, received }
    }

    fn next(&self) -> (u16, Value) {
        self.received.recv_timeout(TIMEOUT).unwrap()
    }

    /// The next message that was accepted.
    pub(crate) fn accepted(&self) -> Value {
        let (status, body) = self.next();
        assert_eq!(status, 200, "{body}");
        body
    }
}

/// Reads a request, and answers it. Returns its body.
fn answer(mut socket: TcpStream, status: u16) -> Value {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    let body = loop {
        let read = socket.read(&mut part).unwrap();
        request.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().parse().unwrap() {
                break body.to_owned();
            }
        }
    };
    let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    socket.write_all(answer.as_bytes()).unwrap();
    serde_json::from_str(&body).unwrap()
}

fn machine() -> Machine {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine
}

#[test]
fn a_webhook_that_refuses_first_gets_the_end_of_a_run() {
    let machine = machine();
    let server = Server::start(&[503, 429]);
    let words = [
        "run",
        "-d",
        "--name",
        "ends",
        "--tag",
        "a=1",
        "--webhook",
        &server.url,
    ];
    let words = [&words[..], &["--", "sh", "-c", "echo hush; exit 3"]].concat();
    let run = machine.longshore(&words).expect(0).out.trim().to_owned();
    assert_eq!((server.next().0, server.next().0), (503, 429));
    let body = server.accepted();
    assert_eq!(body["run"], *run);
    assert_eq!(
        (&body["state"], &body["exitCode"]),
        (&"failed".into(), &3.into())
    );
    assert_eq!(
        (&body["task"], &body["tags"]["a"]),
        (&"main/0".into(), &"1".into())
    );
    assert!(body["text"].as_str().unwrap().contains("main/0"), "{body}");
    assert!(!body.to_string().contains("hush"), "{body}");
    // The objects of the webhook are not tasks of the run, and are removed with it.
    let jobs = machine
        .longshore(&["get", "jobs", "-o", "name"])
        .expect(0)
        .out;
    assert!(jobs.contains(&format!("notify-{run}")), "{jobs}");
    let runs = machine.longshore(&["runs", "-o", "json"]).expect(0).json();
    assert_eq!(runs.as_array().unwrap().len(), 1);
    machine.longshore(&["rm", &run]).expect(0);
    let end = std::time::Instant::now() + TIMEOUT;
    for kind in [
        "jobs",
        "pods",
        "secrets",
        "serviceaccounts",
        "roles",
        "rolebindings",
    ] {
        loop {
            let left = machine
                .longshore(&["get", kind, "-o", "name"])
                .expect(0)
                .out;
            if !left.contains("notify-") {
                break;
            }
            assert!(std::time::Instant::now() < end, "{left}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn success_and_cancellation_are_reported_in_the_form_of_a_service() {
    let machine = machine();
    let server = Server::start(&[]);
    let url = ["--webhook", &server.url];
    let words = [
        &["run", "--name", "good"],
        &url[..],
        &["--webhook-format", "slack", "--", "true"],
    ];
    machine.longshore(&words.concat()).expect(0);
    let body = server.accepted();
    assert!(
        body["text"].as_str().unwrap().contains("succeeded"),
        "{body}"
    );
    assert_eq!(body.as_object().unwrap().len(), 1);
    let words = [
        &["run", "-d", "--name", "slow"],
        &url[..],
        &["--", "sleep", "600"],
    ];
    let run = machine
        .longshore(&words.concat())
        .expect(0)
        .out
        .trim()
        .to_owned();
    machine.longshore(&["cancel", &run]).expect(0);
    let body = server.accepted();
    assert_eq!(
        (&body["run"], &body["state"]),
        (&(*run).into(), &"cancelled".into())
    );
    // A state that was not chosen.
    let words = [
        &["run", "--name", "quiet"],
        &url[..],
        &["--webhook-on", "failed,stuck", "--", "true"],
    ];
    machine.longshore(&words.concat()).expect(0);
    assert!(
        server
            .received
            .recv_timeout(Duration::from_secs(5))
            .is_err()
    );
}

#[test]
fn a_run_that_is_stuck_is_reported_once_and_then_its_end() {
    let machine = machine();
    let server = Server::start(&[]);
    // A claim that is never bound.
    machine.write(
        "claim.yaml",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: never}\n\
         spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
    );
    machine.longshore(&["create", "-f", "claim.yaml"]).expect(0);
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: team}}\nstringData: {{hook: '{}'}}\n",
        server.url
    );
    machine.write("secret.yaml", &secret);
    machine
        .longshore(&["create", "-f", "secret.yaml"])
        .expect(0);
    let words = [
        "run",
        "-d",
        "--name",
        "stuck",
        "--volume",
        "claim:never:/data",
        "--webhook",
        "secret:team/hook",
        "--webhook-stuck-after",
        "1s",
        "--",
        "true",
    ];
    let run = machine.longshore(&words).expect(0).out.trim().to_owned();
    let body = server.accepted();
    assert_eq!(
        (&body["run"], &body["state"]),
        (&(*run).into(), &"stuck".into())
    );
    assert!(
        body["reason"].as_str().unwrap().contains("not bound"),
        "{body}"
    );
    machine.longshore(&["cancel", &run]).expect(0);
    assert_eq!(server.accepted()["state"], "cancelled");
}

#[test]
fn mistakes_are_refused_before_anything_is_created() {
    let machine = machine();
    let run = |webhook: &[&str]| {
        let words = [&["run", "--name", "bad"], webhook, &["--", "true"]];
        machine.longshore(&words.concat())
    };
    let answer = run(&["--webhook", "secret:missing/url"]).expect(4);
    assert!(
        answer.err.contains("the Secret \"missing\" is missing"),
        "{}",
        answer.err
    );
    let answer = run(&["--webhook", "ftp://hush"]).expect(2);
    assert!(
        answer.err.contains("webhook") && !answer.err.contains("hush"),
        "{}",
        answer.err
    );
    run(&["--webhook", "http://x", "--webhook-on", "later"]).expect(2);
    let answer = machine.longshore(&[
        "run",
        "--dry-run",
        "--webhook",
        "https://hooks.slack.com/services/hush",
        "--",
        "true",
    ]);
    assert!(!answer.err.contains("hush"), "{}", answer.err);
    let runs = machine.longshore(&["runs", "-o", "json"]).expect(0).json();
    assert_eq!(runs, serde_json::json!([]));
}

#[test]
fn a_message_arrives_after_the_client_was_killed() {
    let machine = machine();
    let server = Server::start(&[]);
    let words = [
        "run",
        "--name",
        "left",
        "--webhook",
        &server.url,
        "--",
        "sh",
        "-c",
        "echo begun; sleep 3",
    ];
    let mut client = Running::start(machine.command(&words));
    client.wait_for_output("begun");
    client.signal("KILL");
    client.end();
    let body = server.accepted();
    assert_eq!(body["state"], "succeeded", "{body}");
    assert!(body["durationSeconds"].as_i64().unwrap() >= 2, "{body}");
}

#[test]
fn the_notifier_takes_no_room_of_the_tasks() {
    let machine = machine();
    let server = Server::start(&[]);
    let nodes = machine.longshore(&["get", "nodes", "-o", "json"]).expect(0);
    let nodes = nodes.json();
    let node = nodes.get("items").unwrap_or(&nodes)[0].clone();
    let cpu = node["status"]["allocatable"]["cpu"].as_str().unwrap();
    let run = ["run", "--name", "whole", "--cpu", cpu];
    let words = [&run[..], &["--webhook", &server.url, "--", "true"]].concat();
    machine.longshore(&words).expect(0);
    assert_eq!(server.accepted()["state"], "succeeded");
}

#[test]
fn the_runs_of_a_schedule_are_reported() {
    let machine = machine();
    let server = Server::start(&[]);
    let words = [
        "run",
        "--cron",
        "0 0 1 1 *",
        "--webhook",
        &server.url,
        "--",
        "sh",
        "-c",
        "exit 4",
    ];
    let schedule = machine.longshore(&words).expect(0).out.trim().to_owned();
    make_due(&machine);
    let body = server.accepted();
    let run = body["run"].as_str().unwrap();
    assert!(
        run.strip_prefix(&schedule).unwrap().starts_with('-'),
        "{body}"
    );
    assert_eq!(
        (&body["state"], &body["exitCode"]),
        (&"failed".into(), &4.into())
    );
    machine.longshore(&["cancel", &schedule]).expect(0);
    let found = machine
        .longshore(&["get", "cronjobs", "-o", "json"])
        .expect(0)
        .json();
    let all = found
        .as_array()
        .or_else(|| found["items"].as_array())
        .unwrap();
    assert_eq!(all.len(), 2);
    assert!(
        all.iter().all(|one| one["spec"]["suspend"] == true),
        "{found}"
    );
}

#[test]
fn runs_and_why_report_webhooks_that_refuse_and_notifiers_that_cannot_start() {
    let machine = machine();
    let server = Server::start(&[404]);
    let words = [
        "run",
        "--name",
        "refused",
        "--webhook",
        &server.url,
        "--",
        "true",
    ];
    machine.longshore(&words).expect(0);
    assert_eq!(server.next().0, 404);
    let reported = |words: &[&str], expected: &str| {
        crate::machine::eventually(expected, || {
            let answer = machine.longshore(words).expect(0);
            format!("{}{}", answer.out, answer.err).contains(expected)
        });
    };
    let refused = "did not accept the message about the state succeeded: it answered 404";
    reported(&["runs"], refused);
    reported(&["runs", "-o", "json"], refused);
    reported(&["why", "last"], refused);
    let shown = machine.longshore(&["why", "last"]).expect(0).out;
    assert!(shown.contains("note: its webhook is not called"), "{shown}");
    assert!(shown.contains("correct the URL of the webhook"), "{shown}");

    // Neither the account nor the Secret exists when the pods start.
    for (name, field, missing) in [
        (
            "no-account",
            "serviceAccountName: ",
            "the service account \"gone\" is missing",
        ),
        (
            "no-secret",
            "secretName: ",
            "the Secret \"gone\" is missing",
        ),
    ] {
        let plan = [
            "run",
            "--name",
            name,
            "--webhook",
            &server.url,
            "--no-code",
            "--dry-run",
            "--",
            "true",
        ];
        let plan = machine.longshore(&plan).expect(0).out;
        let own = format!("{field}notify-{name}");
        let plan = plan.lines().map(|line| match line.split_once(&own) {
            Some((before, _)) => format!("{before}{field}gone\n"),
            None => format!("{line}\n"),
        });
        machine.write("plan.yaml", &plan.collect::<String>());
        machine.longshore(&["create", "-f", "plan.yaml"]).expect(0);
        reported(&["runs"], missing);
        reported(&["why", name], missing);
    }

    // A webhook that is called is not mentioned.
    let words = [
        "run",
        "--name",
        "fine",
        "--webhook",
        &server.url,
        "--",
        "true",
    ];
    machine.longshore(&words).expect(0);
    server.accepted();
    crate::machine::eventually("nothing is reported", || {
        let why = machine.longshore(&["why", "fine"]).expect(0);
        !why.out.contains("webhook")
    });
    let runs = machine.longshore(&["runs"]).expect(0);
    assert!(!runs.err.contains("fine-"), "{}", runs.err);
}
