//! Tracks the commands that use a cluster on demand. Each such command holds a shared lock. The
//! cluster waits for the exclusive lock, which it gets when the last command has exited, even if
//! that command was killed.

use std::time::{Duration, Instant};

use super::{POLL_INTERVAL, Record, TRANSITION_TIMEOUT};
use crate::{Error, files, layout::Layout, lock::Lock};

/// Time that a command waits for other users of the cluster to exit before it returns. Two commands
/// that exit at the same time can each take the other for a user.
const OTHERS_TIMEOUT: Duration = Duration::from_millis(200);
/// Time that a command waits for another command that stops the cluster.
const GATE_TIMEOUT: Duration = Duration::from_secs(60);

/// A command's use of a cluster. The use ends when this value is dropped.
#[derive(Debug)]
pub struct Usage {
    layout: Layout,
    share: Lock,
}

impl Usage {
    /// Registers a use of the cluster. Call this before looking for the cluster. A
    /// cluster on demand does not stop while the value exists.
    ///
    /// # Errors
    /// The folder cannot be used, or a cluster that is stopping does not stop in
    /// time.
    pub async fn begin(layout: &Layout) -> Result<Self, Error> {
        layout.create()?;
        // The gate is closed while a command stops the cluster. This command then
        // waits and starts the next cluster.
        let _gate = shared(layout, layout.gate(), GATE_TIMEOUT).await?;
        // The cluster holds the exclusive lock while it decides to stop, and until it has stopped.
        let share = shared(layout, layout.users(), TRANSITION_TIMEOUT).await?;
        Ok(Self {
            layout: layout.clone(),
            share,
        })
    }

    /// Makes the running cluster a lasting cluster.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn keep(&self) -> Result<(), Error> {
        files::open(&self.layout.keep()).map(drop)
    }

    /// Returns true if the folder of the cluster still has the path that it had when the use began.
    #[must_use]
    pub fn has_folder(&self) -> bool {
        self.share.is_at(&self.layout.users())
    }

    /// Ends the use. If it was the last one, waits until the cluster has stopped,
    /// unless the cluster keeps running because it is lasting or has work.
    ///
    /// # Errors
    /// A file cannot be read.
    pub async fn end(self, cluster: &Record) -> Result<(), Error> {
        let Self { layout, share } = self;
        drop(share);
        if !cluster.on_demand || layout.is_kept() {
            return Ok(());
        }
        let begin = Instant::now();
        let mut others = None;
        while begin.elapsed() < TRANSITION_TIMEOUT {
            // The folder's lock has no meaning here: the next cluster may already hold it.
            if !cluster.is_alive() {
                return Ok(());
            }
            if layout.busy().exists() {
                return Ok(());
            }
            if is_shared(&layout)? {
                let since = *others.get_or_insert_with(Instant::now);
                if since.elapsed() > OTHERS_TIMEOUT {
                    return Ok(());
                }
            } else {
                others = None;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// Returns true if other commands appear to use the cluster.
fn is_shared(layout: &Layout) -> Result<bool, Error> {
    if Lock::try_exclusive(&layout.users())?.is_some() {
        // No command holds the lock, and the cluster is about to take it.
        return Ok(false);
    }
    // The cluster holds the lock exclusively, or commands share it.
    Ok(Lock::try_shared(&layout.users())?.is_some())
}

async fn shared(
    layout: &Layout,
    path: std::path::PathBuf,
    timeout: Duration,
) -> Result<Lock, Error> {
    let begin = Instant::now();
    loop {
        if let Some(lock) = Lock::try_shared(&path)? {
            return Ok(lock);
        }
        if begin.elapsed() > timeout {
            return Err(Error::Stuck {
                what: "stop",
                dir: layout.dir().to_owned(),
                seconds: timeout.as_secs(),
            });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Waits until no command uses the cluster. Blocks the thread. Returns the exclusive lock, so that
/// no command can start to use the cluster in between. Returns `None` if the cluster was made a
/// lasting cluster.
pub(crate) fn wait_for_last(layout: &Layout) -> Result<Option<Lock>, Error> {
    let exclusive = Lock::exclusive(&layout.users())?;
    Ok(if layout.is_kept() {
        None
    } else {
        Some(exclusive)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_use_does_not_wait_for_the_next_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        let usage = Usage::begin(&layout).await.unwrap();
        let dead = Record {
            pid: std::process::id(),
            process_start: 0,
            started: jiff::Timestamp::UNIX_EPOCH,
            url: String::new(),
            kubeconfig: layout.kubeconfig(),
            ephemeral: false,
            on_demand: true,
            faults: false,
            manual_clock: false,
            nodes: 1,
            authorization_mode: String::new(),
            audit_log: None,
            warnings: Vec::new(),
            version: String::new(),
        };
        let _next = Lock::try_exclusive(&layout.lock()).unwrap().unwrap();
        let end = tokio::time::timeout(TRANSITION_TIMEOUT / 4, usage.end(&dead));
        end.await.expect("it waits for the next cluster").unwrap();
    }
}
