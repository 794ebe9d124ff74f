//! Who uses a cluster on demand. Each command that does holds a share of a
//! lock; the cluster asks for the whole of it and so learns when the last
//! command has ended, even if it was killed.

use std::time::{Duration, Instant};

use super::{POLL_INTERVAL, Record, TRANSITION_TIMEOUT};
use crate::{Error, files, layout::Layout, lock::Lock};

/// How long a command watches others use the cluster before it leaves: two that
/// end at once may each take the other for a user.
const OTHERS_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a command waits for another that stops the cluster.
const GATE_TIMEOUT: Duration = Duration::from_secs(60);

/// A share in the use of a cluster; dropped with the command that holds it.
#[derive(Debug)]
pub struct Usage {
    layout: Layout,
    _share: Lock,
}

impl Usage {
    /// Takes a share. Take it before looking for the cluster: one that runs on
    /// demand does not end while it is held.
    ///
    /// # Errors
    /// The folder cannot be used, or a cluster that is ending does not end.
    pub async fn begin(layout: &Layout) -> Result<Self, Error> {
        layout.create()?;
        // Closed while a command stops the cluster; then this one waits, and
        // starts the next.
        let _gate = shared(layout, layout.gate(), GATE_TIMEOUT).await?;
        // The cluster has the whole lock while it decides whether to end, and
        // until it has ended.
        let share = shared(layout, layout.users(), TRANSITION_TIMEOUT).await?;
        Ok(Self {
            layout: layout.clone(),
            _share: share,
        })
    }

    /// Makes the running cluster a lasting one.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn keep(&self) -> Result<(), Error> {
        files::open(&self.layout.keep()).map(drop)
    }

    /// Gives the share back. If it was the last one, waits until the cluster
    /// has ended, unless that stays: as a lasting one, or for work.
    ///
    /// # Errors
    /// A file cannot be read.
    pub async fn end(self, cluster: &Record) -> Result<(), Error> {
        let Self {
            layout,
            _share: share,
        } = self;
        drop(share);
        if !cluster.on_demand || layout.is_kept() {
            return Ok(());
        }
        let begin = Instant::now();
        let mut others = None;
        while begin.elapsed() < TRANSITION_TIMEOUT {
            if !cluster.is_alive() && !Lock::is_held(&layout.lock())? {
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

/// Whether other commands have a share, as far as can be seen now.
fn is_shared(layout: &Layout) -> Result<bool, Error> {
    if Lock::try_exclusive(&layout.users())?.is_some() {
        // None; the cluster is about to take it.
        return Ok(false);
    }
    // The cluster has it alone, or commands share it.
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

/// Waits until no command uses the cluster; blocks the thread. The lock is
/// returned so that no command can come in between. `None` when the cluster was
/// made a lasting one.
pub(crate) fn wait_for_last(layout: &Layout) -> Result<Option<Lock>, Error> {
    let whole = Lock::exclusive(&layout.users())?;
    Ok(if layout.is_kept() { None } else { Some(whole) })
}
