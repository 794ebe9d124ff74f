//! A user's machine, for one test: a home folder with code and the data folder of an
//! embedded cluster. Dropping it removes both and stops every process.

use std::{
    ffi::OsStr,
    io::Read as _,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Upper bound of every wait, also on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The user ID of an unprivileged user.
const UNPRIVILEGED: u32 = 65534;

pub(crate) struct Machine {
    folder: tempfile::TempDir,
    /// The user that processes run as, if not the test's own.
    user: Option<u32>,
}

/// The exit code and output of a command.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    pub(crate) fn new(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails the test unless the command has this exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "\n--- out\n{}\n--- err\n{}",
            self.out, self.err
        );
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self {
            folder: tempfile::tempdir().unwrap(),
            user: None,
        };
        std::fs::create_dir(machine.code()).unwrap();
        machine
    }

    /// A machine with a user that is not root, also when root runs the tests.
    pub(crate) fn unprivileged() -> Self {
        let mut machine = Self::new();
        let me = std::fs::metadata(machine.code()).unwrap().uid();
        if me == 0 {
            let program = machine.folder.path().join("longshore");
            // Another process copies: a file that this process has open for writing may be
            // inherited by a process that another test starts at the same moment, and then
            // cannot be executed.
            let mut copy = Command::new("cp");
            let copied = copy.arg(env!("CARGO_BIN_EXE_longshore")).arg(program);
            assert!(copied.status().unwrap().success());
            for path in [machine.folder.path(), &machine.code()] {
                chown(path, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
            }
            machine.user = Some(UNPRIVILEGED);
        }
        machine
    }

    /// The code folder, in which commands run.
    pub(crate) fn code(&self) -> PathBuf {
        self.folder.path().join("code")
    }

    /// The embedded cluster's data folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The user's home folder.
    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file to the code folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.code().join(name), text).unwrap();
    }

    /// The program with arguments, ready to run.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = match self.user {
            // A copy of the program, because this user may not have access to the build folder.
            Some(user) => {
                let mut command = Command::new(self.folder.path().join("longshore"));
                command.uid(user).gid(user);
                command
            }
            None => Command::new(env!("CARGO_BIN_EXE_longshore")),
        };
        command.args(arguments);
        self.at(command)
    }

    /// A shell script, ready to run.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-e", "-c", script]);
        self.at(command)
    }

    /// Sets the machine's folders and clears all other environment variables.
    fn at(&self, mut command: Command) -> Command {
        command
            .current_dir(self.code())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.folder.path())
            .env("LONGSHORE_DATA_DIR", self.data())
            .stdin(Stdio::null());
        command
    }

    /// Runs the program until it ends.
    pub(crate) fn longshore<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Answer {
        Answer::new(&self.command(arguments).output().unwrap())
    }

    /// Runs `longshore run` with a shell script as the command.
    pub(crate) fn run_script(&self, script: &str) -> Answer {
        self.longshore(&["run", "--name", "job", "--", "sh", "-c", script])
    }

    /// The output of `status`.
    pub(crate) fn status(&self) -> serde_json::Value {
        self.longshore(&["status", "--output", "json"]).json()
    }

    /// The process of the cluster, if it runs.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.status()["pid"]
            .as_i64()
            .map(|pid| i32::try_from(pid).unwrap())
    }

    /// Fails the test if any process still has this word among its arguments.
    #[track_caller]
    pub(crate) fn assert_no_process(&self, word: &str) {
        let found = processes_with(word);
        assert!(found.is_empty(), "processes still run: {found:?}");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.command(&["down", "--force"]).output();
    }
}

/// A command that runs while the test continues.
pub(crate) struct Running {
    child: Option<Child>,
    /// The part of standard error that has been read.
    errors: Vec<u8>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            child: Some(child),
            errors: Vec::new(),
        }
    }

    /// Returns the standard output of the command. Can be called once.
    pub(crate) fn output(&mut self) -> std::process::ChildStdout {
        self.child.as_mut().unwrap().stdout.take().unwrap()
    }

    /// Waits until a line of standard output contains `text`, and discards the output.
    #[track_caller]
    pub(crate) fn wait_for_output(&mut self, text: &str) {
        let mut out = std::io::BufReader::new(self.output());
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(std::io::BufRead::read_line(&mut out, &mut line).unwrap() > 0);
        }
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    }

    /// Waits until standard error contains `text`.
    #[track_caller]
    pub(crate) fn wait_for_error(&mut self, text: &str) {
        let errors = self.child.as_mut().unwrap().stderr.as_mut().unwrap();
        let begin = Instant::now();
        let mut buffer = [0; 4096];
        loop {
            let shown = String::from_utf8_lossy(&self.errors);
            if shown.contains(text) {
                return;
            }
            assert!(begin.elapsed() < TIMEOUT, "never: {text}\n{shown}");
            let mut ready = [PollFd::new(&*errors, PollFlags::IN)];
            let limit = Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            if poll(&mut ready, Some(&limit)).unwrap() > 0 {
                let count = errors.read(&mut buffer).unwrap();
                assert!(count > 0, "the program ended without {text}\n{shown}");
                self.errors.extend_from_slice(&buffer[..count]);
            }
        }
    }

    /// Returns the part of standard error that has been read.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.errors).into_owned()
    }

    /// Returns true if the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().unwrap();
        child.try_wait().unwrap().is_some()
    }

    pub(crate) fn signal(&self, name: &str) {
        let child = self.child.as_ref().unwrap();
        signal(i32::try_from(child.id()).unwrap(), name);
    }

    pub(crate) fn end(mut self) -> Answer {
        let mut output = self.child.take().unwrap().wait_with_output().unwrap();
        output.stderr.splice(..0, std::mem::take(&mut self.errors));
        Answer::new(&output)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Sends a signal by name, such as `KILL`.
pub(crate) fn signal(pid: i32, name: &str) {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status()
        .unwrap();
    assert!(status.success());
}

/// Waits until `holds` returns true.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(10);
    while !holds() {
        assert!(begin.elapsed() < TIMEOUT, "never: {what}");
        std::thread::sleep(pause);
        // Most conditions start the program: other tests need the processor, too.
        pause = (pause * 2).min(Duration::from_millis(160));
    }
}

/// The arguments of running processes that have `word` among them.
pub(crate) fn processes_with(word: &str) -> Vec<String> {
    let found = found_with(word).into_iter();
    found.map(|(_, arguments)| arguments).collect()
}

/// Kills the processes that have `word` among their arguments.
#[track_caller]
pub(crate) fn kill_with(word: &str) {
    let found = found_with(word);
    assert!(!found.is_empty(), "no process has {word}");
    for (pid, _) in found {
        // A process may have ended with another one.
        let _ = Command::new("kill")
            .arg("-KILL")
            .arg(pid.to_string())
            .status();
    }
}

/// Returns true if a process exists and has not ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !state.is_empty() && !state.starts_with('Z')
}

/// The numbers and arguments of running processes that have `word` among their arguments.
pub(crate) fn found_with(word: &str) -> Vec<(u32, String)> {
    let of_process = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let arguments = std::fs::read(path.join("cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&arguments).replace('\0', " ")))
    };
    let own = std::process::id();
    std::fs::read_dir(Path::new("/proc"))
        .unwrap()
        .flatten()
        .filter_map(of_process)
        .filter(|(pid, arguments)| *pid != own && arguments.contains(word))
        .collect()
}

/// A word that no other process on the machine has among its arguments.
pub(crate) fn unique_word() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "marker-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}
