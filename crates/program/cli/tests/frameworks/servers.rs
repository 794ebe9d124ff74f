//! The recipes of docs/dev.md with the real TensorBoard and JupyterLab.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
};

use crate::{
    install::environment,
    machine::{Machine, Running},
    page::write_files,
};

/// Starts a run and gets a page from the port that it announces.
fn page(machine: &Machine, arguments: &[&str], path: &str) -> (Running, String) {
    let mut search = environment("servers").join("bin").into_os_string();
    search.push(":");
    search.push(std::env::var_os("PATH").unwrap());
    let mut command = machine.command(arguments);
    command.env("PATH", search);
    let mut running = Running::start(command);
    running.wait_for_error(" is port ");
    let shown = running.errors();
    let (_, rest) = shown.split_once("http://").unwrap();
    let address = rest.split(' ').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    (running, text)
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn tensorboard_is_forwarded() {
    let machine = Machine::new();
    write_files(&machine, "dev.md", "board");
    let settings = machine.code().join("board/longshore.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(settings, text.replace(":16006", ":0")).unwrap();
    fs::create_dir(machine.code().join("board/logs")).unwrap();
    let (running, text) = page(&machine, &["run", "board"], "/");
    assert!(text.contains("<title>TensorBoard</title>"), "{text}");
    machine.write("board/logs/stop", "");
    running.end().expect(0);
}

#[test]
#[ignore = "cargo xtask test --frameworks"]
fn jupyter_is_forwarded() {
    let machine = Machine::new();
    write_files(&machine, "dev.md", "lab");
    let words = ["run", "lab", "--forward", "0:8888", "--", "sh", "lab.sh"];
    let (running, text) = page(&machine, &words, "/login");
    assert!(text.contains("Jupyter"), "{text}");
    machine.longshore(&["cancel", "last"]).expect(0);
    running.end().expect(130);
}
