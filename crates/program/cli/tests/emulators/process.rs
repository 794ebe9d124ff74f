//! A server that runs in Node.js.

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::{machine::eventually, proxy::Proxy};

/// Dropping it kills the process.
struct Process {
    child: Child,
    /// The port that it has announced.
    port: u16,
}

impl Process {
    /// Starts a server, and waits until it prints its address, `http://127.0.0.1:PORT`.
    fn start(mut command: Command, folder: &Path) -> Self {
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

/// A server with its folder, behind a proxy that can stall.
pub(crate) struct Emulator {
    proxy: Proxy,
    // The process ends before its folder is removed.
    server: Process,
    folder: tempfile::TempDir,
}

impl Emulator {
    /// Starts the server of a command, which gets the folder.
    pub(crate) fn start(command: impl FnOnce(&Path) -> Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Process::start(command(folder.path()), folder.path());
        Self {
            proxy: Proxy::start(server.port),
            server,
            folder,
        }
    }

    /// The emulator's folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The port of the server itself.
    pub(crate) fn port(&self) -> u16 {
        self.server.port
    }

    /// The address of the proxy, for the program.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.proxy.port)
    }

    /// From now on, a connection that has sent half a part stalls; returns at once.
    pub(crate) fn stall(&self) {
        self.proxy.stall();
    }

    /// Ends the connection that stalls.
    pub(crate) fn resume(&self) {
        self.proxy.resume();
    }
}

/// A script of these tests, ready to run with Node.js.
pub(crate) fn script(name: &str) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulators");
    let mut command = Command::new("node");
    command.arg(folder.join(name));
    command
}
