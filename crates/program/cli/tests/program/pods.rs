//! The commands for pods: describe, logs, exec, attach, cp, port-forward.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Stdio,
};

use crate::machine::{Answer, Machine, Running, TIMEOUT, eventually};

/// A server that returns its input in capitals on port 7011, and logs requests.
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

/// A machine whose cluster has the pods above, ready.
fn machine() -> Machine {
    with_pods(Machine::new())
}

fn with_pods(machine: Machine) -> Machine {
    machine.longshore(&["up"]).expect(0);
    machine.write("pods.yaml", SHOUT);
    machine.longshore(&["create", "-f", "pods.yaml"]).expect(0);
    let ready = ["wait", "pod", "shout", "asks", "--until", "ready"];
    machine.longshore(&ready).expect(0);
    eventually("the pod listens", || {
        machine
            .longshore(&["logs", "shout"])
            .out
            .ends_with("listening\n")
    });
    machine
}

fn typed(machine: &Machine, arguments: &[&str], text: &str) -> Answer {
    let mut command = machine.command(arguments);
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
fn tasks_of_jobs_are_addressed_by_host_name() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
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
    typed(&machine, &["create", "-f", "-"], job).expect(0);
    for (name, index) in [("train-1", "1"), ("train-0.train", "0")] {
        let asks = ["exec", name, "--", "printenv", "JOB_COMPLETION_INDEX"];
        eventually("the task runs", || machine.longshore(&asks).code == 0);
        assert_eq!(machine.longshore(&asks).expect(0).out.trim(), index);
    }
    let there = machine.longshore(&["exec", "train-1", "--", "mktemp", "-d"]);
    let folder = there.expect(0).out.trim().to_owned();
    let from = machine.code().join("a");
    std::fs::write(&from, "here").unwrap();
    let to = format!("train-1.train:{folder}");
    machine
        .longshore(&["cp", from.to_str().unwrap(), &to])
        .expect(0);
    let read = ["exec", "train-1", "--", "cat", &format!("{folder}/a")];
    assert_eq!(machine.longshore(&read).expect(0).out, "here");
    machine
        .longshore(&["exec", "train-1", "--", "rm", "-r", &folder])
        .expect(0);
}

#[test]
fn commands_run_in_pods() {
    let machine = machine();
    let script = "echo out; echo err >&2; exit 7";
    let answer = machine
        .longshore(&["exec", "shout", "--", "sh", "-c", script])
        .expect(7);
    assert_eq!((&*answer.out, &*answer.err), ("out\n", "err\n"));
    let counted = typed(
        &machine,
        &["exec", "shout", "-i", "--", "wc", "-c"],
        "12345",
    );
    assert_eq!(counted.expect(0).out.trim(), "5");
    // Without `-i`, the command gets no input.
    let nothing = typed(&machine, &["exec", "shout", "--", "wc", "-c"], "12345");
    assert_eq!(nothing.expect(0).out.trim(), "0");
    let no_terminal = machine
        .longshore(&["exec", "shout", "-it", "--", "sh"])
        .expect(2);
    assert!(
        no_terminal.err.contains("-t requires a terminal"),
        "{}",
        no_terminal.err
    );
    let no_pod = machine.longshore(&["exec", "none", "--", "true"]).expect(1);
    assert!(
        no_pod.err.contains("no run or pod \"none\""),
        "{}",
        no_pod.err
    );
    let no_container = ["exec", "shout", "-c", "none", "--", "true"];
    let no_container = machine.longshore(&no_container).expect(1);
    assert!(
        no_container
            .err
            .contains("container none is not valid for pod shout"),
        "{}",
        no_container.err
    );

    let no_task = machine
        .longshore(&["exec", "none-0.none", "--", "true"])
        .expect(1);
    assert!(
        no_task.err.contains("no run or pod \"none-0.none\""),
        "{}",
        no_task.err
    );

    let attached = typed(&machine, &["attach", "asks", "-i"], "this\n");
    assert_eq!(attached.expect(0).out, "got this\n");
    let finished = ["wait", "pod", "asks", "--until", "finished"];
    machine.longshore(&finished).expect(0);
}

#[test]
fn commands_run_in_pods_of_unprivileged_users() {
    let machine = with_pods(Machine::unprivileged());
    let script = "id -u; hostname; tr '\\0' ' ' </proc/1/cmdline; echo; kill -0 1 && echo same";
    let answer = machine.longshore(&["exec", "shout", "--", "sh", "-c", script]);
    let answer = answer.expect(0);
    let lines: Vec<&str> = answer.out.lines().collect();
    // In the pod's namespaces: its host name, and its init process, which has the same
    // user.
    assert!(lines[0] != "0" && lines[1] == "shout", "{lines:?}");
    assert!(lines[2].starts_with("longshore-init"), "{lines:?}");
    assert_eq!(lines.last(), Some(&"same"), "{lines:?}");
    machine
        .longshore(&["exec", "shout", "--", "false"])
        .expect(1);
    let typed = typed(
        &machine,
        &["exec", "shout", "-i", "--", "tr", "a", "b"],
        "a",
    );
    assert_eq!(typed.expect(0).out, "b");
}

#[test]
fn logs_and_descriptions_of_pods() {
    let machine = machine();
    let mut follow = Running::start(machine.command(&["logs", "pod/shout", "--follow"]));
    let mut lines = BufReader::new(follow.output()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    assert_eq!(lines.next().unwrap().unwrap(), "listening");
    drop(follow);

    // No run has this name, but a pod does.
    let last = machine
        .longshore(&["logs", "shout", "--tail", "1"])
        .expect(0);
    assert_eq!(last.out, "listening\n");
    let timed = machine
        .longshore(&["logs", "po/shout", "--timestamps"])
        .expect(0);
    let first = timed.out.lines().next().unwrap();
    assert!(
        first.starts_with("20") && first.ends_with("Z one"),
        "{first}"
    );
    let previous = machine.longshore(&["logs", "pod/shout", "-p"]).expect(1);
    assert!(
        previous.err.contains("previous terminated container"),
        "{}",
        previous.err
    );
    let of_run = machine
        .longshore(&["logs", "pod/shout", "--role", "worker"])
        .expect(2);
    assert!(
        of_run.err.contains("--role is for a run's logs"),
        "{}",
        of_run.err
    );
    let unknown = machine.longshore(&["logs", "missing"]).expect(1);
    assert!(
        unknown.err.contains("no run or pod \"missing\""),
        "{}",
        unknown.err
    );

    let pod = machine
        .longshore(&["describe", "pod", "shout"])
        .expect(0)
        .out;
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
    let secret = machine
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
fn files_are_copied_in_both_directions() {
    let machine = machine();
    let there = machine.longshore(&["exec", "shout", "--", "mktemp", "-d"]);
    let there = format!("shout:{}", there.expect(0).out.trim());
    machine.write("data.csv", "a,b\n");
    let sent = machine.longshore(&["cp", "data.csv", &there]).expect(0);
    assert!(
        sent.err.contains("copied 1 file, 4 B, to /"),
        "{}",
        sent.err
    );
    let from = format!("{there}/data.csv");
    machine.longshore(&["cp", &from, "back.csv"]).expect(0);
    let back = std::fs::read_to_string(machine.code().join("back.csv")).unwrap();
    assert_eq!(back, "a,b\n");

    let none = machine
        .longshore(&["cp", &format!("{there}/none"), "."])
        .expect(1);
    assert!(none.err.contains("cannot copy shout:"), "{}", none.err);
    for places in [["a", "b"], ["a:b", "c:d"]] {
        let refused = machine.longshore(&["cp", places[0], places[1]]).expect(2);
        assert!(refused.err.contains("in a container"), "{}", refused.err);
    }
    let folder = there.strip_prefix("shout:").unwrap();
    machine
        .longshore(&["exec", "shout", "--", "rm", "-r", folder])
        .expect(0);
}

#[test]
fn cp_from_a_finished_pod_reports_that_its_files_are_deleted() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    let run = machine
        .longshore(&["run", "--detach", "--", "true"])
        .expect(0);
    let run = run.out.trim().to_owned();
    machine.longshore(&["attach", &run]).expect(0);
    let from = format!("{run}-main-0:/tmp/x");
    let answer = machine.longshore(&["cp", &from, "."]).expect(1);
    for part in [
        "has ended, and its files are gone",
        "`longshore run --output-files PATTERN` keeps files",
    ] {
        assert!(answer.err.contains(part), "{part}: {}", answer.err);
    }
}

#[test]
fn ports_of_pods_are_forwarded() {
    let machine = machine();
    let mut forward = Running::start(machine.command(&["port-forward", "shout", ":7011"]));
    let mut lines = BufReader::new(forward.output()).lines();
    let line = lines.next().unwrap().unwrap();
    let (here, there) = line.split_once(" -> ").unwrap();
    assert_eq!(there, "shout:7011");
    for _ in 0..2 {
        let mut stream = TcpStream::connect(here).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(b"hello").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "HELLO");
    }
    let taken = here.rsplit_once(':').unwrap().1;
    let again = machine
        .longshore(&["port-forward", "shout", &format!("{taken}:7011")])
        .expect(1);
    assert!(
        again.err.contains("cannot listen on 127.0.0.1:"),
        "{}",
        again.err
    );
    let no_pod = machine
        .longshore(&["port-forward", "none", ":80"])
        .expect(1);
    assert!(
        no_pod.err.contains("no run or pod \"none\""),
        "{}",
        no_pod.err
    );
    let no_port = machine
        .longshore(&["port-forward", "shout", "http"])
        .expect(2);
    assert!(no_port.err.contains("is not a port"), "{}", no_port.err);
}

#[test]
fn exec_and_cp_start_in_the_tasks_working_directory() {
    let machine = Machine::new();
    machine.write("train.py", "print('trained')\n");
    machine.longshore(&["up", "--ephemeral"]).expect(0);
    let started = ["run", "--detach", "--name", "job", "--", "sleep", "300"];
    let run = machine.longshore(&started).expect(0).out.trim().to_owned();
    let task = format!("{run}-main-0");
    eventually("the task runs", || {
        machine.longshore(&["exec", &task, "--", "true"]).code == 0
    });
    let listed = machine.longshore(&["exec", &task, "--", "ls"]).expect(0);
    assert_eq!(listed.out, "train.py\n");
    let from = format!("{task}:train.py");
    machine.longshore(&["cp", &from, "copied.py"]).expect(0);
    let copied = std::fs::read_to_string(machine.code().join("copied.py")).unwrap();
    assert_eq!(copied, "print('trained')\n");
}
