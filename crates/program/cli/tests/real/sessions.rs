//! The development loop in pods with an image: changed files, terminals, ports and SSH. And
//! messages about runs.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
    time::Duration,
};

use crate::{machine::Running, stage::Stage};

fn dev(stage: &Stage, words: &[&str]) -> Running {
    let start = ["dev", "--context", "real", "--namespace", &stage.name];
    let image = ["--launcher-image", stage.facts("launcherImage")];
    let mut command = stage.command(&[&start[..], &image, words].concat());
    command.stdin(std::process::Stdio::null());
    Running::start(command)
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_changed_file_restarts_the_command_in_the_same_pod() {
    let stage = Stage::new();
    stage.machine.write("lib.sh", "VERSION=1\n");
    let script = ". ./lib.sh\necho version $VERSION\nsleep 600 & wait\n";
    stage.machine.write("train.sh", script);
    let mut running = dev(&stage, &["--", "sh", "train.sh"]);
    let mut lines = BufReader::new(running.output()).lines();
    let mut see = |text: &str| {
        let found = lines.find(|line| line.as_ref().unwrap().contains(text));
        assert!(found.is_some(), "the output ended without {text}");
    };
    see("version 1");
    let pods = || stage.kubectl(&["get", "pods", "--output", "name"]);
    let pod = pods();
    stage.machine.write("lib.sh", "VERSION=2\n");
    running.wait_for_error("changed: lib.sh (1 file, 10 B); restarted in ");
    see("version 2");
    assert_eq!(pods(), pod);
    running.signal("INT");
    running.end().expect(130);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn ssh_clients_use_a_task() {
    let stage = Stage::new();
    if Command::new("ssh").arg("-V").output().is_err() {
        println!("skipped: OpenSSH's client is not installed (Debian: openssh-client)");
        return;
    }
    stage.machine.write("in-the-code", "");
    stage.detach(&["--env", "GREETING=hello", "--", "sleep", "1000"]);
    stage.eventually("it runs", || stage.phase() == "Running");
    let config = stage.about(&["ssh", "--config"]).expect(0).out;
    stage.machine.write("ssh.conf", &config);
    let ssh = |words: &[&str]| {
        let mut ssh = Command::new("ssh");
        let own = stage.command::<&str>(&[]);
        let env = own
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        ssh.current_dir(stage.machine.code()).envs(env);
        let output = ssh.args(["-F", "ssh.conf"]).args(words).output().unwrap();
        crate::machine::Answer::new(&output)
    };
    let answer = ssh(&["last.longshore", "echo $GREETING; ls; exit 7"]);
    let answer = answer.expect(7);
    assert!(answer.out.starts_with("hello\n"), "{}", answer.out);
    assert!(answer.out.contains("in-the-code"), "{}", answer.out);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_port_of_a_task_is_forwarded() {
    let stage = Stage::new();
    stage.machine.write("index.html", "hello from the task");
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let forward = format!("{port}:8000");
    let serve = [
        "--forward",
        &forward,
        "--",
        "python3",
        "-m",
        "http.server",
        "8000",
    ];
    let running = Running::start(stage.run_command(&serve));
    let request = || -> Option<String> {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        socket.write_all(b"GET /index.html HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        socket.read_to_string(&mut text).ok()?;
        Some(text)
    };
    stage.eventually("the server answers", || {
        request().is_some_and(|text| text.contains("hello from the task"))
    });
    running.signal("INT");
    running.end();
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn a_webhook_is_called_from_the_cluster() {
    let stage = Stage::new();
    let listener = TcpListener::bind((stage.machine(), 0)).unwrap();
    let url = format!("http://{}/runs", listener.local_addr().unwrap());
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let (mut text, mut part) = (String::new(), [0; 4096]);
            while !text.contains("\"state\"") {
                let count = socket.read(&mut part).unwrap();
                if count == 0 {
                    break;
                }
                text += &String::from_utf8_lossy(&part[..count]);
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            socket.write_all(answer.as_bytes()).unwrap();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    // No client follows the run.
    let run = stage.detach(&["--webhook", &url, "--", "sh", "-c", "exit 3"]);
    let text = received.recv_timeout(Duration::from_secs(180)).unwrap();
    assert!(text.contains(&run) && text.contains("failed"), "{text}");
}
