//! Runs real kubectl binaries.

use std::{
    env, fs, io,
    os::unix::fs::symlink,
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

/// Longer than any single command of the tests takes on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(90);

/// A kubectl binary and the cluster it uses. It has its own kubeconfig and caches.
pub struct Kubectl {
    binary: PathBuf,
    home: TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub struct CommandResult {
    /// The exit code; `None` if a signal terminated the command.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

impl Kubectl {
    /// The kubectl binaries to test, oldest first, followed by the one installed on the
    /// machine. Empty if `cargo xtask test` could not fetch them, which it reports.
    ///
    /// # Panics
    /// If the environment variable that `cargo xtask test` sets is missing.
    #[must_use]
    pub fn binaries() -> Vec<PathBuf> {
        let binaries = env::var_os("LONGSHORE_TEST_KUBECTLS");
        let binaries = binaries.expect(
            "LONGSHORE_TEST_KUBECTLS names the kubectls to test with: run `cargo xtask test`",
        );
        env::split_paths(&binaries)
            .filter(|binary| !binary.as_os_str().is_empty())
            .collect()
    }

    /// Every kubectl of [`Kubectl::binaries`], configured for one cluster.
    ///
    /// # Panics
    /// Like [`Kubectl::binaries`].
    #[must_use]
    pub fn all(kubeconfig: &Path) -> Vec<Self> {
        let binaries = Self::binaries().into_iter();
        binaries
            .map(|binary| Self::new(binary, kubeconfig))
            .collect()
    }

    /// A kubectl with a copy of the kubeconfig.
    ///
    /// # Panics
    /// If its folder cannot be created.
    #[must_use]
    pub fn new(binary: PathBuf, kubeconfig: &Path) -> Self {
        Self::with_home(binary, kubeconfig).expect("a temporary folder can be created and filled")
    }

    fn with_home(binary: PathBuf, kubeconfig: &Path) -> io::Result<Self> {
        let home = tempfile::tempdir()?;
        for folder in ["bin", "work"] {
            fs::create_dir(home.path().join(folder))?;
        }
        fs::copy(kubeconfig, home.path().join("kubeconfig"))?;
        symlink(&binary, home.path().join("bin/kubectl"))?;
        Ok(Self { binary, home })
    }

    /// The name of the binary, for messages and object names: `kubectl-v32`.
    #[must_use]
    pub fn name(&self) -> String {
        self.binary
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.home.path().join("work"))
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("kubeconfig"))
            .env("KUBECTL_KUBERC", "false")
            // Without garbage collection, a process that ends soon takes a fifth less CPU time.
            .env("GOGC", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs kubectl and waits for it.
    ///
    /// # Panics
    /// If kubectl cannot be started or times out.
    pub async fn run(&self, arguments: &[&str]) -> CommandResult {
        self.run_with(arguments, "").await
    }

    /// Runs kubectl with `input` on its standard input and waits for it.
    ///
    /// # Panics
    /// Like [`Kubectl::run`].
    pub async fn run_with(&self, arguments: &[&str], input: &str) -> CommandResult {
        let command = self.command(&self.binary, arguments);
        self.finish(command, arguments, input).await
    }

    /// Runs a line of `sh` and waits for it. In it, `kubectl` is this binary. The working
    /// folder persists between lines. The standard output includes the standard error.
    ///
    /// # Panics
    /// Like [`Kubectl::run`].
    pub async fn shell(&self, line: &str) -> CommandResult {
        let arguments = ["-c", &format!("exec 2>&1\n{line}")];
        let mut command = self.command(Path::new("sh"), &arguments);
        let mut path = vec![self.home.path().join("bin")];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        command.env(
            "PATH",
            env::join_paths(path).expect("the entries of PATH are valid"),
        );
        self.finish(command, &arguments, "").await
    }

    async fn finish(&self, mut command: Command, arguments: &[&str], input: &str) -> CommandResult {
        let mut child = command.spawn().expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("its standard input is a pipe");
        stdin.write_all(input.as_bytes()).await.ok();
        drop(stdin);
        let output = timeout(COMMAND_TIMEOUT, child.wait_with_output()).await;
        let output = output
            .unwrap_or_else(|_| panic!("{} {arguments:?} did not end", self.name()))
            .expect("its output can be read");
        CommandResult {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs kubectl, asserts success, and returns the standard output.
    ///
    /// # Panics
    /// If the command fails.
    pub async fn ok(&self, arguments: &[&str]) -> String {
        self.ok_with(arguments, "").await
    }

    /// Like [`Kubectl::ok`], with `input` on the standard input.
    ///
    /// # Panics
    /// If the command fails.
    pub async fn ok_with(&self, arguments: &[&str], input: &str) -> String {
        let ran = self.run_with(arguments, input).await;
        assert_eq!(ran.code, Some(0), "{} {arguments:?}: {ran:?}", self.name());
        ran.stdout
    }

    /// Starts kubectl and returns while it runs, as needed for `--watch`.
    ///
    /// # Panics
    /// If kubectl cannot be started.
    #[must_use]
    pub fn spawn(&self, arguments: &[&str]) -> RunningCommand {
        let mut command = self.command(&self.binary, arguments);
        let mut child = command.spawn().expect("kubectl starts");
        let stdout = child.stdout.take().expect("its standard output is a pipe");
        RunningCommand {
            _child: child,
            lines: BufReader::new(stdout).lines(),
        }
    }
}

/// A running kubectl; dropping it kills the process.
pub struct RunningCommand {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl RunningCommand {
    /// Reads lines until one contains all of `parts` and returns that line.
    ///
    /// # Panics
    /// If the command ends or times out before.
    pub async fn until(&mut self, parts: &[&str]) -> String {
        let mut seen = Vec::new();
        loop {
            let line = timeout(COMMAND_TIMEOUT, self.lines.next_line()).await;
            let Ok(Ok(Some(line))) = line else {
                panic!("no line contains {parts:?}: {seen:#?}")
            };
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
            seen.push(line);
        }
    }
}
