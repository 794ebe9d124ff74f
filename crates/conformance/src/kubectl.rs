//! Running a real kubectl.

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

/// No single command of the tests takes this long, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// One kubectl and the cluster it talks to. Its kubeconfig and its caches are
/// its own.
pub struct Kubectl {
    binary: PathBuf,
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
    /// Every kubectl to test with, oldest first, the machine's own at last. None
    /// where `cargo xtask test` could not fetch them; it says so.
    ///
    /// # Panics
    /// Outside `cargo xtask test`, which says where they are.
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

    /// Every kubectl of [`Kubectl::binaries`], on one cluster.
    ///
    /// # Panics
    /// As [`Kubectl::binaries`].
    #[must_use]
    pub fn all(kubeconfig: &Path) -> Vec<Self> {
        let binaries = Self::binaries().into_iter();
        binaries
            .map(|binary| Self::new(binary, kubeconfig))
            .collect()
    }

    /// One kubectl, with a copy of the kubeconfig.
    ///
    /// # Panics
    /// When its folder cannot be made: a test cannot go on without.
    #[must_use]
    pub fn new(binary: PathBuf, kubeconfig: &Path) -> Self {
        Self::with_home(binary, kubeconfig).expect("a temporary folder can be filled")
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

    /// Its name, for messages and for names of objects: `kubectl-v32`.
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
        let command = self.command(&self.binary, arguments);
        self.finish(command, arguments, input).await
    }

    /// Runs a line of `sh` to its end: its `kubectl` is this one, its folder is
    /// kept from line to line. What it complains about is among what it prints.
    ///
    /// # Panics
    /// As [`Kubectl::run`].
    pub async fn shell(&self, line: &str) -> Ran {
        let arguments = ["-c", &format!("exec 2>&1\n{line}")];
        let mut command = self.command(Path::new("sh"), &arguments);
        let mut path = vec![self.home.path().join("bin")];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        command.env("PATH", env::join_paths(path).expect("PATH was one before"));
        self.finish(command, &arguments, "").await
    }

    async fn finish(&self, mut command: Command, arguments: &[&str], input: &str) -> Ran {
        let mut child = command.spawn().expect("kubectl starts");
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
        let mut command = self.command(&self.binary, arguments);
        let mut child = command.spawn().expect("kubectl starts");
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
