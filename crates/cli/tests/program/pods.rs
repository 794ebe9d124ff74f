//! The verbs for pods: describe, logs, exec, attach, cp, port-forward.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Stdio,
};

use crate::desk::{Answer, Desk, PATIENCE, Running, eventually};

/// A server that answers in capitals on port 7011, and tells of it.
const SHOUT: &str = "
apiVersion: v1
kind: Pod
metadata: {name: shout, labels: {app: shout}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: any
    command:
    - python3
    - -uc
    - |
      import os, socket
      s = socket.create_server((os.environ['IP'], 7011))
      print('one')
      print('listening')
      while True:
          c, _ = s.accept()
          c.sendall(c.recv(100).upper())
          c.close()
    env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: asks}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: any, stdin: true, stdinOnce: true, command: [sh, -c, 'read word; echo got $word']}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {token: 'not to be seen', short: ab}
";

/// A desk whose cluster has the pods above, ready.
fn desk() -> Desk {
    with_pods(Desk::new())
}

fn with_pods(desk: Desk) -> Desk {
    desk.longshore(&["up"]).expect(0);
    desk.write("pods.yaml", SHOUT);
    desk.longshore(&["create", "-f", "pods.yaml"]).expect(0);
    let ready = ["wait", "pod", "shout", "asks", "--until", "ready"];
    desk.longshore(&ready).expect(0);
    eventually("the pod listens", || {
        desk.longshore(&["logs", "shout"])
            .out
            .ends_with("listening\n")
    });
    desk
}

fn typed(desk: &Desk, arguments: &[&str], text: &str) -> Answer {
    let mut command = desk.command(arguments);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    Answer::new(&child.wait_with_output().unwrap())
}

#[test]
fn tasks_of_jobs_go_by_their_host_names() {
    let desk = Desk::new();
    desk.longshore(&["up"]).expect(0);
    let job = r#"
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: any, command: [sleep, "300"]}]
"#;
    typed(&desk, &["create", "-f", "-"], job).expect(0);
    for (name, index) in [("train-1", "1"), ("train-0.train", "0")] {
        let asks = ["exec", name, "--", "printenv", "JOB_COMPLETION_INDEX"];
        eventually("the task runs", || desk.longshore(&asks).code == 0);
        assert_eq!(desk.longshore(&asks).expect(0).out.trim(), index);
    }
    let there = desk.longshore(&["exec", "train-1", "--", "mktemp", "-d"]);
    let folder = there.expect(0).out.trim().to_owned();
    let from = desk.code().join("a");
    std::fs::write(&from, "here").unwrap();
    let to = format!("train-1.train:{folder}");
    desk.longshore(&["cp", from.to_str().unwrap(), &to])
        .expect(0);
    let read = ["exec", "train-1", "--", "cat", &format!("{folder}/a")];
    assert_eq!(desk.longshore(&read).expect(0).out, "here");
    desk.longshore(&["exec", "train-1", "--", "rm", "-r", &folder])
        .expect(0);
}

#[test]
fn commands_run_in_pods() {
    let desk = desk();
    let script = "echo out; echo err >&2; exit 7";
    let answer = desk
        .longshore(&["exec", "shout", "--", "sh", "-c", script])
        .expect(7);
    assert_eq!((&*answer.out, &*answer.err), ("out\n", "err\n"));
    let counted = typed(&desk, &["exec", "shout", "-i", "--", "wc", "-c"], "12345");
    assert_eq!(counted.expect(0).out.trim(), "5");
    // Without -i there is no input.
    let nothing = typed(&desk, &["exec", "shout", "--", "wc", "-c"], "12345");
    assert_eq!(nothing.expect(0).out.trim(), "0");
    let no_terminal = desk
        .longshore(&["exec", "shout", "-it", "--", "sh"])
        .expect(2);
    assert!(
        no_terminal.err.contains("-t needs a terminal here, too"),
        "{}",
        no_terminal.err
    );
    let no_pod = desk.longshore(&["exec", "none", "--", "true"]).expect(1);
    assert!(
        no_pod.err.contains("no run or pod \"none\""),
        "{}",
        no_pod.err
    );
    let no_container = ["exec", "shout", "-c", "none", "--", "true"];
    let no_container = desk.longshore(&no_container).expect(1);
    assert!(
        no_container
            .err
            .contains("container none is not valid for pod shout"),
        "{}",
        no_container.err
    );

    let no_task = desk
        .longshore(&["exec", "none-0.none", "--", "true"])
        .expect(1);
    assert!(
        no_task.err.contains("no run or pod \"none-0.none\""),
        "{}",
        no_task.err
    );

    let attached = typed(&desk, &["attach", "asks", "-i"], "this\n");
    assert_eq!(attached.expect(0).out, "got this\n");
    let finished = ["wait", "pod", "asks", "--until", "finished"];
    desk.longshore(&finished).expect(0);
}

#[test]
fn commands_run_in_pods_of_who_is_not_root() {
    let desk = with_pods(Desk::of_nobody());
    let script = "id -u; hostname; tr '\\0' ' ' </proc/1/cmdline; echo; kill -0 1 && echo same";
    let answer = desk.longshore(&["exec", "shout", "--", "sh", "-c", script]);
    let answer = answer.expect(0);
    let lines: Vec<&str> = answer.out.lines().collect();
    // In the pod's namespaces: its host name, its init, which is the same user's.
    assert!(lines[0] != "0" && lines[1] == "shout", "{lines:?}");
    assert!(lines[2].starts_with("longshore-init"), "{lines:?}");
    assert_eq!(lines.last(), Some(&"same"), "{lines:?}");
    desk.longshore(&["exec", "shout", "--", "false"]).expect(1);
    let typed = typed(&desk, &["exec", "shout", "-i", "--", "tr", "a", "b"], "a");
    assert_eq!(typed.expect(0).out, "b");
}

#[test]
fn logs_and_descriptions_of_pods() {
    let desk = desk();
    let mut follow = Running::start(desk.command(&["logs", "pod/shout", "--follow"]));
    let mut lines = BufReader::new(follow.output()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    assert_eq!(lines.next().unwrap().unwrap(), "listening");
    drop(follow);

    // No run has this name, but a pod does.
    let last = desk.longshore(&["logs", "shout", "--tail", "1"]).expect(0);
    assert_eq!(last.out, "listening\n");
    let timed = desk
        .longshore(&["logs", "po/shout", "--timestamps"])
        .expect(0);
    let first = timed.out.lines().next().unwrap();
    assert!(
        first.starts_with("20") && first.ends_with("Z one"),
        "{first}"
    );
    let previous = desk.longshore(&["logs", "pod/shout", "-p"]).expect(1);
    assert!(
        previous.err.contains("previous terminated container"),
        "{}",
        previous.err
    );
    let of_run = desk
        .longshore(&["logs", "pod/shout", "--role", "worker"])
        .expect(2);
    assert!(
        of_run.err.contains("--role is for a run's logs"),
        "{}",
        of_run.err
    );
    let unknown = desk.longshore(&["logs", "nobody"]).expect(1);
    assert!(
        unknown.err.contains("no run or pod \"nobody\""),
        "{}",
        unknown.err
    );

    let pod = desk.longshore(&["describe", "pod", "shout"]).expect(0).out;
    for part in [
        "pod/shout\n",
        "phase Running",
        "app: shout",
        "events:",
        "Started",
    ] {
        assert!(pod.contains(part), "no {part:?} in\n{pod}");
    }
    assert!(!pod.contains("managedFields"), "{pod}");
    let secret = desk
        .longshore(&["describe", "secret", "keys"])
        .expect(0)
        .out;
    assert!(
        secret.contains("token: 14 bytes") && secret.contains("short: 2 bytes"),
        "{secret}"
    );
    assert!(!secret.contains("bm90IHRv"), "{secret}");
}

#[test]
fn files_are_copied_both_ways() {
    let desk = desk();
    let there = desk.longshore(&["exec", "shout", "--", "mktemp", "-d"]);
    let there = format!("shout:{}", there.expect(0).out.trim());
    desk.write("data.csv", "a,b\n");
    let sent = desk.longshore(&["cp", "data.csv", &there]).expect(0);
    assert!(
        sent.err.contains("copied 1 file, 4 B, to /"),
        "{}",
        sent.err
    );
    let from = format!("{there}/data.csv");
    desk.longshore(&["cp", &from, "back.csv"]).expect(0);
    let back = std::fs::read_to_string(desk.code().join("back.csv")).unwrap();
    assert_eq!(back, "a,b\n");

    let none = desk
        .longshore(&["cp", &format!("{there}/none"), "."])
        .expect(1);
    assert!(none.err.contains("cannot copy shout:"), "{}", none.err);
    for places in [["a", "b"], ["a:b", "c:d"]] {
        let refused = desk.longshore(&["cp", places[0], places[1]]).expect(2);
        assert!(refused.err.contains("in a container"), "{}", refused.err);
    }
    let folder = there.strip_prefix("shout:").unwrap();
    desk.longshore(&["exec", "shout", "--", "rm", "-r", folder])
        .expect(0);
}

#[test]
fn files_of_a_pod_that_has_ended_are_said_to_be_gone() {
    let desk = Desk::new();
    desk.longshore(&["up"]).expect(0);
    let run = desk.longshore(&["run", "--detach", "--", "true"]).expect(0);
    let run = run.out.trim().to_owned();
    desk.longshore(&["attach", &run]).expect(0);
    let from = format!("{run}-main-0:/tmp/x");
    let answer = desk.longshore(&["cp", &from, "."]).expect(1);
    for part in [
        "has ended, and its files are gone",
        "--volume host:outputs:/outputs",
    ] {
        assert!(answer.err.contains(part), "{part}: {}", answer.err);
    }
}

#[test]
fn ports_of_pods_are_here() {
    let desk = desk();
    let mut forward = Running::start(desk.command(&["port-forward", "shout", ":7011"]));
    let mut lines = BufReader::new(forward.output()).lines();
    let line = lines.next().unwrap().unwrap();
    let (here, there) = line.split_once(" -> ").unwrap();
    assert_eq!(there, "shout:7011");
    for _ in 0..2 {
        let mut stream = TcpStream::connect(here).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"hello").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "HELLO");
    }
    let taken = here.rsplit_once(':').unwrap().1;
    let again = desk
        .longshore(&["port-forward", "shout", &format!("{taken}:7011")])
        .expect(1);
    assert!(
        again.err.contains("cannot listen on 127.0.0.1:"),
        "{}",
        again.err
    );
    let no_pod = desk.longshore(&["port-forward", "none", ":80"]).expect(1);
    assert!(
        no_pod.err.contains("no run or pod \"none\""),
        "{}",
        no_pod.err
    );
    let no_port = desk.longshore(&["port-forward", "shout", "http"]).expect(2);
    assert!(no_port.err.contains("is not a port"), "{}", no_port.err);
}

#[test]
fn exec_and_cp_start_where_a_task_runs() {
    let desk = Desk::new();
    desk.write("train.py", "print('trained')\n");
    desk.longshore(&["up", "--ephemeral"]).expect(0);
    let started = ["run", "--detach", "--name", "job", "--", "sleep", "300"];
    let run = desk.longshore(&started).expect(0).out.trim().to_owned();
    let task = format!("{run}-main-0");
    eventually("the task runs", || {
        desk.longshore(&["exec", &task, "--", "true"]).code == 0
    });
    let listed = desk.longshore(&["exec", &task, "--", "ls"]).expect(0);
    assert_eq!(listed.out, "train.py\n");
    let from = format!("{task}:train.py");
    desk.longshore(&["cp", &from, "copied.py"]).expect(0);
    let copied = std::fs::read_to_string(desk.code().join("copied.py")).unwrap();
    assert_eq!(copied, "print('trained')\n");
}
