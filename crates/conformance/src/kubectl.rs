//! Running a real kubectl.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// No single command of the tests takes this long, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// One kubectl and the cluster it talks to. Its caches are its own.
pub struct Kubectl {
    binary: PathBuf,
    kubeconfig: PathBuf,
    home: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Kubectl {
    /// Every kubectl to test with, oldest first, on one cluster. None where
    /// `cargo xtask test` could not fetch them; it says so.
    ///
    /// # Panics
    /// Outside `cargo xtask test`, which says where they are.
    #[must_use]
    pub fn all(kubeconfig: &Path) -> Vec<Self> {
        let binaries = env::var_os("LONGSHORE_TEST_KUBECTLS");
        let binaries = binaries.expect(
            "LONGSHORE_TEST_KUBECTLS names the kubectls to test with: run `cargo xtask test`",
        );
        env::split_paths(&binaries)
            .filter(|binary| !binary.as_os_str().is_empty())
            .map(|binary| Self {
                binary,
                kubeconfig: kubeconfig.to_owned(),
                home: tempfile::tempdir().expect("a temporary folder can be made"),
            })
            .collect()
    }

    /// Its name, for messages and for names of objects: `kubectl-v32`.
    #[must_use]
    pub fn name(&self) -> String {
        self.binary
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECTL_KUBERC", "false")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it cannot be started, or takes longer than any command should.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "").await
    }

    /// Runs it to its end with `input` on its standard input.
    ///
    /// # Panics
    /// As [`Kubectl::run`].
    pub async fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self.command(arguments).spawn().expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("its standard input is a pipe");
        stdin.write_all(input.as_bytes()).await.ok();
        drop(stdin);
        let output = timeout(PATIENCE, child.wait_with_output()).await;
        let output = output
            .unwrap_or_else(|_| panic!("{} {arguments:?} did not end", self.name()))
            .expect("its output can be read");
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs it, expects success, and gives what it printed.
    ///
    /// # Panics
    /// When it fails.
    pub async fn ok(&self, arguments: &[&str]) -> String {
        self.ok_with(arguments, "").await
    }

    /// As [`Kubectl::ok`], with `input` on its standard input.
    ///
    /// # Panics
    /// When it fails.
    pub async fn ok_with(&self, arguments: &[&str], input: &str) -> String {
        let ran = self.run_with(arguments, input).await;
        assert_eq!(ran.code, Some(0), "{} {arguments:?}: {ran:?}", self.name());
        ran.stdout
    }

    /// Starts it to read its output while it goes on, as with `--watch`.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn follow(&self, arguments: &[&str]) -> Following {
        let mut child = self.command(arguments).spawn().expect("kubectl starts");
        let stdout = child.stdout.take().expect("its standard output is a pipe");
        Following {
            _child: child,
            lines: BufReader::new(stdout).lines(),
        }
    }
}

/// A kubectl that goes on; dropping it ends it.
pub struct Following {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    /// Reads lines until one contains all of `parts`; gives that line.
    ///
    /// # Panics
    /// When it ends, or nothing like it comes for long.
    pub async fn until(&mut self, parts: &[&str]) -> String {
        let mut seen = Vec::new();
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await;
            let Ok(Ok(Some(line))) = line else {
                panic!("no line with {parts:?} came; there were {seen:#?}")
            };
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
            seen.push(line);
        }
    }
}
