//! Starting the background process, and its report.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{Record, State, TRANSITION_TIMEOUT, find, log};
use crate::{Error, Layout};

/// How to start the background process.
#[derive(Debug, Clone)]
pub struct SpawnOptions {
    /// The program; it calls [`serve`](super::serve()) and [`Report`]s.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<std::ffi::OsString>,
    /// The instance's folder.
    pub dir: PathBuf,
}

/// What the background process says on its standard output, once, as a line of
/// JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Report {
    /// It serves.
    Ready(Record),
    /// Another process runs the folder's cluster already.
    Busy,
    /// It does not start, and why.
    Failed(String),
}

/// Starts the background process and waits until the cluster serves. When
/// another process was quicker, its cluster is the answer.
///
/// # Errors
/// The process cannot be started, or ends before it is ready: with the end of
/// its log.
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
        // Neither ready nor dead: it is ours alone, so it is killed.
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
    // It has said its last word and is about to end.
    end(&mut child).await;
    Err(Error::Spawn {
        message,
        log: log::read_end(&log, begin),
        log_path: layout.log(),
    })
}

/// Gives a process a session of its own from its first instruction on, and
/// nothing of what this process was started with: no terminal, no signal of the
/// terminal's, no open file of the shell.
#[allow(unsafe_code, reason = "the only way to act between fork and exec")]
fn detach(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    const FIRST_OTHER: libc::c_uint = 3;
    // SAFETY: setsid and close_range are system calls that allocate nothing and
    // take no lock. The flag closes at exec, so that the descriptor by which
    // the standard library reports a failed exec still works.
    unsafe {
        command.pre_exec(|| {
            // It fails only for the leader of a group, which a fork is not.
            rustix::process::setsid()?;
            // Linux before 5.11 does not know the flag: then what the shell
            // left open stays open.
            libc::syscall(
                libc::SYS_close_range,
                FIRST_OTHER,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
            Ok(())
        });
    }
}

/// Waits a moment for a process that should end by itself, then ends it.
async fn end(child: &mut std::process::Child) {
    for _ in 0..1000 {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let _ = child.kill();
    let _ = child.wait();
}
