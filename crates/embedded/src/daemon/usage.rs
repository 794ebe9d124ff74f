//! Who uses a cluster on demand. Each command that does holds a share of a
//! lock; the cluster asks for the whole of it and so learns when the last
//! command has ended, even if it was killed.

use std::time::{Duration, Instant};

use super::{PATIENCE, Record, STEP};
use crate::{Error, files, layout::Layout, lock::Lock};

/// How long a cluster may take to notice that it is not used any more.
const OTHERS: Duration = Duration::from_millis(200);

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
        let begin = Instant::now();
        loop {
            if let Some(share) = Lock::try_shared(&layout.users())? {
                return Ok(Self {
                    layout: layout.clone(),
                    _share: share,
                });
            }
            // The cluster has the whole lock: it is ending.
            if begin.elapsed() > PATIENCE {
                return Err(Error::Stuck {
                    what: "stop",
                    dir: layout.dir().to_owned(),
                    seconds: PATIENCE.as_secs(),
                });
            }
            tokio::time::sleep(STEP).await;
        }
    }

    /// Makes the running cluster a lasting one.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn keep(&self) -> Result<(), Error> {
        files::write_private(&self.layout.keep(), b"")
    }

    /// Gives the share back. If it was the last one, waits until the cluster
    /// has ended, unless it is a lasting one.
    ///
    /// # Errors
    /// A file cannot be read.
    pub async fn end(self, cluster: &Record) -> Result<(), Error> {
        let Self {
            layout,
            _share: share,
        } = self;
        drop(share);
        if !cluster.on_demand || is_kept(&layout) {
            return Ok(());
        }
        // The lock tells whether others have a share; if the cluster was
        // quicker and has it whole, its record goes in a moment.
        let mut is_last = Lock::try_exclusive(&layout.users())?.is_some();
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if !cluster.is_alive() && !Lock::is_held(&layout.lock())? {
                return Ok(());
            }
            is_last = is_last || Record::read_living(&layout)?.is_none();
            if !is_last && begin.elapsed() > OTHERS {
                return Ok(());
            }
            tokio::time::sleep(STEP).await;
        }
        Ok(())
    }
}

/// Whether somebody asked for a lasting cluster.
pub(crate) fn is_kept(layout: &Layout) -> bool {
    layout.keep().exists()
}

/// Waits until nobody uses the cluster and nobody asked to keep it; blocks the
/// thread. The lock is returned so that no command can come in between.
/// `None` when the cluster was made a lasting one.
pub(crate) fn wait_for_last(layout: &Layout) -> Result<Option<Lock>, Error> {
    let whole = Lock::exclusive(&layout.users())?;
    Ok(if is_kept(layout) { None } else { Some(whole) })
}
