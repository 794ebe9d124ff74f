//! Stops the cluster of a folder.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{End, POLL_INTERVAL, Record, State, TRANSITION_TIMEOUT, find};
use crate::{Error, files, layout::Layout, lock::Lock};

/// Time that a command that stops a cluster waits for commands that are starting to use it.
const GATE_TIMEOUT: Duration = Duration::from_secs(30);

/// The way in which a cluster ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Stopped {
    /// No cluster was running.
    NotRunning,
    /// The cluster stopped after SIGTERM.
    Kindly(Record),
    /// The cluster had to be killed.
    Killed(Record),
}

/// The exclusive right to stop the cluster of a folder. While a command holds it, no other command
/// can start to use the cluster, so that the holder's information about the runs stays true. Other
/// commands wait and then start the next cluster.
#[derive(Debug)]
pub struct Stop {
    layout: Layout,
    /// `None` if the file system cannot create the file.
    _gate: Option<Lock>,
}

impl Stop {
    /// Waits for the right to stop the cluster.
    ///
    /// # Errors
    /// The folder cannot be used, or another command that stops the cluster does
    /// not finish in time.
    pub async fn begin(layout: &Layout) -> Result<Self, Error> {
        layout.create()?;
        let begin = Instant::now();
        loop {
            let gate = match Lock::try_exclusive(&layout.gate()) {
                Ok(gate) => gate.map(Some),
                Err(error) if error.is_storage() => {
                    tracing::warn!(%error, "other commands can start to use the cluster meanwhile");
                    Some(None)
                }
                Err(error) => return Err(error),
            };
            if let Some(gate) = gate {
                return Ok(Self {
                    layout: layout.clone(),
                    _gate: gate,
                });
            }
            if begin.elapsed() > GATE_TIMEOUT {
                return Err(Error::Stuck {
                    what: "stop",
                    dir: layout.dir().to_owned(),
                    seconds: GATE_TIMEOUT.as_secs(),
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Records the cause before the cluster is stopped. This is needed because a cluster on demand
    /// can stop by itself as soon as its runs have been stopped. A full disk does not prevent the
    /// stop.
    pub fn announce(&self, record: &Record, cause: &str) {
        let end = End::now(record.pid, record.process_start, cause);
        if let Err(error) = end.write(&self.layout) {
            tracing::warn!(%error, "cannot record why the cluster is stopped");
        }
    }

    /// Waits until no command uses the cluster, or until the timeout. Commands that
    /// follow a run can then report why it ended.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub async fn wait_for_users(&self, timeout: Duration) -> Result<bool, Error> {
        let begin = Instant::now();
        loop {
            if Lock::try_exclusive(&self.layout.users())?.is_some() {
                return Ok(true);
            }
            if begin.elapsed() > timeout {
                return Ok(false);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Stops the cluster with SIGTERM, and kills it after a timeout. Returns when
    /// its process has exited. `cause` is recorded as the reason, for example
    /// `longshore down`.
    ///
    /// # Errors
    /// The process cannot be signalled, or does not exit after SIGKILL.
    pub async fn stop(self, cause: &str) -> Result<Stopped, Error> {
        let layout = &self.layout;
        let State::Running(record) = find(layout).await? else {
            remove_record(layout);
            return Ok(Stopped::NotRunning);
        };
        self.announce(&record, cause);
        signal(&record, Signal::TERM, layout)?;
        if wait_until_free(layout, &record, TRANSITION_TIMEOUT).await? {
            return Ok(Stopped::Kindly(record));
        }
        signal(&record, Signal::KILL, layout)?;
        if wait_until_free(layout, &record, TRANSITION_TIMEOUT).await? {
            remove_record(layout);
            return Ok(Stopped::Killed(record));
        }
        Err(Error::Stuck {
            what: "stop",
            dir: layout.dir().to_owned(),
            seconds: 2 * TRANSITION_TIMEOUT.as_secs(),
        })
    }
}

/// Stops the cluster of a folder even if commands use it, see [`Stop::stop`].
///
/// # Errors
/// See [`Stop::begin`] and [`Stop::stop`].
pub async fn stop(layout: &Layout, cause: &str) -> Result<Stopped, Error> {
    Stop::begin(layout).await?.stop(cause).await
}

/// Removes the record of a process that has ended. A record that stays has no effect.
fn remove_record(layout: &Layout) {
    if let Err(error) = files::remove_optional(&layout.record()) {
        tracing::warn!(%error, "the record of a cluster that has ended remains");
    }
}

fn signal(record: &Record, signal: Signal, layout: &Layout) -> Result<(), Error> {
    let Some(pid) = i32::try_from(record.pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    // The process may have exited, and another process may have its ID now.
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
    timeout: Duration,
) -> Result<bool, Error> {
    let begin = Instant::now();
    while begin.elapsed() < timeout {
        if !record.is_alive() && !Lock::is_held(&layout.lock())? {
            return Ok(true);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(false)
}
