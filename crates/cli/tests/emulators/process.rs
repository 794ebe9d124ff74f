//! A server that runs in Node.js.

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::machine::eventually;

/// Dropping it kills the process.
pub(crate) struct Process {
    child: Child,
    /// The port that it has announced.
    pub(crate) port: u16,
}

impl Process {
    /// Starts a server, and waits until it prints its address, `http://127.0.0.1:PORT`.
    pub(crate) fn start(mut command: Command, folder: &Path) -> Self {
        let log = folder.join("log");
        let output = File::create(&log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .expect("Node.js is installed");
        let mut process = Self { child, port: 0 };
        eventually("the server listens", || {
            let text = fs::read_to_string(&log).unwrap();
            let ended = process.child.try_wait().unwrap();
            assert!(ended.is_none(), "the server has ended: {text}");
            let listening = text.lines().find(|line| line.contains("listens on"));
            let port = listening.and_then(|line| line.rsplit(':').next());
            let port = port.and_then(|port| port.trim().parse().ok());
            process.port = port.unwrap_or_default();
            process.port != 0
        });
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A script of these tests, ready to run with Node.js.
pub(crate) fn script(name: &str) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulators");
    let mut command = Command::new("node");
    command.arg(folder.join(name));
    command
}
