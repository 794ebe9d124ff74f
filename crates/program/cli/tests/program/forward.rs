//! Forwarded ports of a run.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use crate::machine::{Machine, Running, eventually};

/// Gets a file over HTTP.
fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Serves the folder of the code, after the file `go` exists.
const SERVER: &str = "echo up; until test -e $0; do sleep 0.05; done; exec python3 -m http.server --bind 0.0.0.0 $PORT";

/// The address in the line that announces a port.
fn announced(running: &mut Running, text: &str) -> String {
    running.wait_for_error(text);
    let shown = running.errors();
    let line = shown.lines().find(|line| line.contains(text)).unwrap();
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn a_port_is_announced_when_the_task_listens() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("page.txt", "the page\n");
    let port = free_port().to_string();
    machine.write("longshore.toml", &format!("forward = ['0:{port}']\n"));
    let go = machine.home().join("go").display().to_string();
    let words = [
        "run",
        "-e",
        &format!("PORT={port}"),
        "--",
        "sh",
        "-c",
        SERVER,
        &go,
    ];
    let mut run = Running::start(machine.command(&words));
    run.wait_for_output("| up");
    assert!(!run.errors().contains("http://"), "{}", run.errors());
    std::fs::write(&go, "").unwrap();
    let address = announced(&mut run, &format!("is port {port} of main/0"));
    let page = get(&address, "/page.txt").unwrap();
    assert!(page.ends_with("the page\n"), "{page}");

    // Forwards to a run that is followed elsewhere, until the run ends.
    let words = ["forward", "last", &format!("main:0:{port}")];
    let mut other = Running::start(machine.command(&words));
    let address = announced(&mut other, &format!("is port {port} of main/0"));
    assert!(get(&address, "/page.txt").unwrap().ends_with("the page\n"));
    machine.longshore(&["cancel", "last"]).expect(0);
    other.end().expect(0);
    run.end().expect(130);
}

#[test]
fn a_new_pod_takes_the_place_of_the_old_one() {
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.write("page.txt", "the page\n");
    let port = free_port().to_string();
    let go = machine.home().join("go").display().to_string();
    std::fs::write(&go, "").unwrap();
    let words = [
        "dev",
        "-e",
        &format!("PORT={port}"),
        "--forward",
        &format!("0:{port}"),
        "--",
        "sh",
        "-c",
        SERVER,
        &go,
    ];
    let mut run = Running::start(machine.command(&words));
    let address = announced(&mut run, &format!("is port {port} of main/0"));
    assert!(get(&address, "/page.txt").unwrap().ends_with("the page\n"));
    machine.write("page.txt", "another\n");
    eventually("the change is served", || {
        get(&address, "/page.txt").is_some_and(|page| page.ends_with("another\n"))
    });
    let pods = machine
        .longshore(&["get", "pods", "-o", "name"])
        .expect(0)
        .out;
    machine
        .longshore(&["delete", pods.trim(), "--grace-period", "0"])
        .expect(0);
    eventually("the new pod serves", || {
        get(&address, "/page.txt").is_some_and(|page| page.ends_with("another\n"))
    });
}

#[test]
fn wrong_ports_are_refused() {
    let machine = Machine::new();
    machine.write("a", "");
    let refused = |arguments: &[&str], problem: &str| {
        let words = [&["run"], arguments, &["--", "true"]].concat();
        let answer = machine.longshore(&words).expect(2);
        assert!(
            answer.err.contains(problem),
            "{arguments:?}: {}",
            answer.err
        );
    };
    refused(&["--forward", "x"], "write PORT, LOCAL:PORT");
    refused(&["--forward", "ps:80"], "the roles are main");
    refused(&["--forward", "main/1:80"], "the role main has 1 tasks");
    refused(
        &["--forward", "8080", "--forward", "8080:80"],
        "as in LOCAL:80",
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    refused(&["--forward", &port], "choose another local port");
    // No run was created.
    machine.longshore(&["status"]).expect(3);
}
