//! The bundles that a cluster keeps in a folder of its own, with unpacked copies for pods
//! to come, and how the folder stays small: what runs still need stays, the rest goes when
//! it was removed with its last run, when it is not used any more, or when there is no
//! room for it.
//!
//! `docs/stores.md` tells the rules; `collect` decides by them, [`uses`] asks the
//! cluster, `keeper` does it again and again, and has copies made (`ready`).

mod collect;
mod files;
mod keeper;
mod limit;
mod ready;
#[cfg(test)]
mod tests;
mod uses;

use std::{
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use jiff::Timestamp;
use longshore_client::Cluster;

pub use keeper::keep;
pub use limit::{DEFAULT_LIMIT, Limit};
pub use uses::{Uses, uses};

/// The folder of a cluster's bundles: a [`Store::Folder`](crate::Store::Folder) that is
/// this cluster's alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    root: PathBuf,
}

/// A bundle that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBundle {
    /// Its sha256, in hexadecimal.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// When a run with it was submitted last.
    pub used: SystemTime,
    /// Whether its last run was removed by the user, and none was submitted since.
    released: bool,
    /// How many bytes its ready copy has, if there is one.
    copy: Option<u64>,
}

impl KeptBundle {
    /// What it takes with its copy.
    fn bytes(&self) -> u64 {
        self.size.saturating_add(self.copy.unwrap_or(0))
    }
}

/// How much is kept, in number and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many there are.
    pub count: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What a folder of bundles takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The bundles.
    pub bundles: Amount,
    /// Their ready copies.
    pub ready_copies: Amount,
}

impl Usage {
    /// All of it, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bundles.bytes.saturating_add(self.ready_copies.bytes)
    }
}

/// What became of a bundle whose last run was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It was removed: so many bytes are free.
    Freed(u64),
    /// Pods that are about to end still have it; it is removed after them.
    Later(u64),
    /// It stays: other runs use it, or it is about to be used. Or it is not there.
    Stays,
}

impl Kept {
    /// The bundles in this folder, which need not be there.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How much room it takes now.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn usage(&self) -> io::Result<Usage> {
        let mut usage = Usage::default();
        for bundle in self.bundles()? {
            usage.bundles.add(bundle.size);
            if let Some(bytes) = bundle.copy {
                usage.ready_copies.add(bytes);
            }
        }
        Ok(usage)
    }

    /// Removes a bundle after the run that was submitted at `submitted` and had it was
    /// removed, if no other run uses it. A bundle that was used later than that run is
    /// about to be used by a run that is not submitted yet: it stays.
    ///
    /// # Errors
    /// The cluster does not answer, or the folder cannot be written.
    pub async fn release(
        &self,
        cluster: &Cluster,
        sha256: &str,
        submitted: Timestamp,
    ) -> io::Result<Released> {
        let bundles = self.bundles()?;
        let Some(bundle) = bundles.iter().find(|bundle| bundle.sha256 == sha256) else {
            return Ok(Released::Stays);
        };
        if bundle.used > SystemTime::from(submitted) {
            return Ok(Released::Stays);
        }
        let uses = uses(cluster).await.map_err(io::Error::other)?;
        if uses.is_referred(sha256) {
            return Ok(Released::Stays);
        }
        if uses.is_needed(sha256) {
            self.mark_released(bundle)?;
            return Ok(Released::Later(bundle.bytes()));
        }
        Ok(match self.remove(bundle)? {
            true => Released::Freed(bundle.bytes()),
            false => Released::Stays,
        })
    }
}
