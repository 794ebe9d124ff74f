//! Starts the background process and reads its report.

use std::{
    ffi::OsString,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{Record, State, TRANSITION_TIMEOUT, find, log};
use crate::{Error, Layout};

/// The options for starting the background process.
#[derive(Debug, Clone)]
pub struct SpawnOptions {
    /// The program. It must call [`serve`](super::serve()) and print a [`Report`].
    pub program: PathBuf,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
    /// The instance's folder.
    pub dir: PathBuf,
}

impl SpawnOptions {
    /// Options for a lasting cluster in the folder of `layout`, run by the program `longshore`.
    /// Further options can be appended to the arguments.
    #[must_use]
    pub fn new(program: &Path, layout: &Layout) -> Self {
        let mut arguments: Vec<OsString> = ["up", "--foreground", "--spawned", "--data-dir"]
            .map(OsString::from)
            .to_vec();
        arguments.push(layout.dir().into());
        Self {
            program: program.to_owned(),
            arguments,
            dir: layout.dir().to_owned(),
        }
    }
}

/// The single line of JSON that the background process prints on standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Report {
    /// The cluster is ready.
    Ready(Record),
    /// Another process already runs the folder's cluster.
    Busy,
    /// The cluster failed to start, with the reason.
    Failed(String),
}

/// Starts the background process and waits until the cluster is ready. If another
/// process has started a cluster in the meantime, returns that cluster.
///
/// The process cannot be started, or exits before it is ready. The error contains the last lines of
/// the process's log.
pub async fn spawn(options: SpawnOptions) -> Result<Record, Error> {
    let layout = Layout::new(&options.dir);
    layout.create()?;
    let (log, begin) = log::for_child(&layout.log())?;
    let child_log = log.try_clone().map_err(Error::file("open", layout.log()))?;
    let mut command = Command::new(&options.program);
    command
        .args(&options.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(child_log);
    detach(&mut command);
    let mut child = command
        .spawn()
        .map_err(Error::file("start", &options.program))?;
    let output = child.stdout.take();
    let report = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(output?).read_line(&mut line).ok()?;
        serde_json::from_str::<Report>(&line).ok()
    });
    let Ok(report) = tokio::time::timeout(TRANSITION_TIMEOUT, report).await else {
        // The process is not ready, but still running. No other command knows it yet, so it is
        // killed.
        let _ = child.kill();
        let _ = child.wait();
        return Err(Error::Stuck {
            what: "get ready",
            dir: options.dir,
            seconds: TRANSITION_TIMEOUT.as_secs(),
        });
    };
    let message = match report.ok().flatten() {
        Some(Report::Ready(record)) => return Ok(record),
        Some(Report::Busy) => {
            let _ = child.wait();
            if let State::Running(record) = find(&layout).await? {
                return Ok(record);
            }
            None
        }
        Some(Report::Failed(message)) => Some(message),
        None => None,
    };
    // The process has printed its report and is about to exit.
    wait_or_kill(&mut child).await;
    Err(Error::Spawn {
        message,
        log: log::read_last_lines(&log, begin),
        log_path: layout.log(),
    })
}

/// Starts the process in a new session from its first instruction, and detaches it from the
/// invoking shell: it has no terminal, does not receive the terminal's signals, and does not
/// inherit the shell's open files.
#[allow(unsafe_code, reason = "the only way to act between fork and exec")]
fn detach(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    const FIRST_INHERITED: libc::c_uint = 3;
    // SAFETY: setsid and close_range are system calls that do not allocate or take locks.
    // CLOSE_RANGE_CLOEXEC closes the descriptors only at exec, so that the standard library can
    // still report a failed exec through its descriptor.
    unsafe {
        command.pre_exec(|| {
            // setsid fails only for a process group leader. A forked process is not
            // one.
            rustix::process::setsid()?;
            // Linux before 5.11 does not support the flag. Files that the shell
            // left open then stay open.
            libc::syscall(
                libc::SYS_close_range,
                FIRST_INHERITED,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
            Ok(())
        });
    }
}

/// Waits for a process that should exit by itself, then kills it.
async fn wait_or_kill(child: &mut std::process::Child) {
    for _ in 0..1000 {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let _ = child.kill();
    let _ = child.wait();
}
