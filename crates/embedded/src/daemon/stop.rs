//! Stopping the cluster of a folder.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, Record, STEP, State, find};
use crate::{Error, files, layout::Layout, lock::Lock};

/// How a cluster ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Stopped {
    /// There was none.
    NotRunning,
    /// It ended by itself when asked.
    Kindly(Record),
    /// It had to be killed.
    Killed(Record),
}

/// Stops the cluster of a folder: asks, waits, kills. Returns when its process
/// has gone.
///
/// # Errors
/// The process cannot be signalled, or outlives even that.
pub async fn stop(layout: &Layout) -> Result<Stopped, Error> {
    let State::Running(record) = find(layout).await? else {
        files::remove_optional(&layout.record())?;
        return Ok(Stopped::NotRunning);
    };
    signal(&record, Signal::TERM, layout)?;
    if wait_until_free(layout, &record, PATIENCE).await? {
        return Ok(Stopped::Kindly(record));
    }
    signal(&record, Signal::KILL, layout)?;
    if wait_until_free(layout, &record, PATIENCE).await? {
        files::remove_optional(&layout.record())?;
        return Ok(Stopped::Killed(record));
    }
    Err(Error::Stuck {
        what: "stop",
        dir: layout.dir().to_owned(),
        seconds: 2 * PATIENCE.as_secs(),
    })
}

fn signal(record: &Record, signal: Signal, layout: &Layout) -> Result<(), Error> {
    let Some(pid) = i32::try_from(record.pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    // It may have ended, and its number may be another's by now.
    if !record.is_alive() {
        return Ok(());
    }
    match kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(Error::file("signal the process of", layout.dir())(
            error.into(),
        )),
    }
}

async fn wait_until_free(
    layout: &Layout,
    record: &Record,
    patience: Duration,
) -> Result<bool, Error> {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        if !record.is_alive() && !Lock::is_held(&layout.lock())? {
            return Ok(true);
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(false)
}
