//! Starting the background process and hearing from it.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{PATIENCE, Record, State, find};
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

/// The log is put aside when it is longer than this, in bytes.
const LOG_LIMIT: u64 = 8 << 20;
/// How many lines of the log a failure shows.
const LOG_LINES: usize = 15;

/// Starts the background process and waits until the cluster serves. When
/// another process was quicker, its cluster is the answer.
///
/// # Errors
/// The process cannot be started, or ends before it is ready: with the end of
/// its log.
pub async fn spawn(options: SpawnOptions) -> Result<Record, Error> {
    let layout = Layout::new(&options.dir);
    layout.create()?;
    let (log, begin) = open_log(&layout.log())?;
    let child_log = log.try_clone().map_err(Error::file("open", layout.log()))?;
    let mut child = Command::new(&options.program)
        .args(&options.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(child_log)
        .spawn()
        .map_err(Error::file("start", &options.program))?;
    let output = child.stdout.take();
    let report = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(output?).read_line(&mut line).ok()?;
        serde_json::from_str::<Report>(&line).ok()
    });
    let Ok(report) = tokio::time::timeout(PATIENCE, report).await else {
        // Neither ready nor dead: it is ours and nobody else's, so it goes.
        let _ = child.kill();
        let _ = child.wait();
        return Err(Error::Stuck {
            what: "get ready",
            dir: options.dir,
            seconds: PATIENCE.as_secs(),
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
        log: read_end(&log, begin),
        log_path: layout.log(),
    })
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

/// Opens the log for appending; returns its present length, too.
fn open_log(path: &Path) -> Result<(File, u64), Error> {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    if length(path) > LOG_LIMIT {
        let _ = std::fs::rename(path, path.with_extension("log.1"));
    }
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .mode(0o600)
        .open(path)
        .map_err(Error::file("open", path))?;
    Ok((file, length(path)))
}

/// The last lines written since `begin`.
fn read_end(mut log: &File, begin: u64) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = log
        .seek(SeekFrom::Start(begin))
        .and_then(|_| log.read_to_end(&mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}
