//! The bundles that a cluster keeps in its own folder, with unpacked copies for future pods.
//! Bundles that runs need are kept. Others are removed with their last run, when they have
//! been unused for some time, or when they exceed the limit.
//!
//! `docs/stores.md` describes the rules. `collect` applies them, [`uses`] queries the
//! cluster, and `keeper` does both periodically and creates copies (`ready`).

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
pub use limit::DEFAULT_LIMIT;
pub use longshore_files::DiskLimit as Limit;
pub use uses::{Uses, uses};

/// The folder of a cluster's bundles: a [`Store::Folder`](crate::Store::Folder) that only
/// this cluster uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    root: PathBuf,
}

/// A kept bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBundle {
    /// The sha256, in hexadecimal.
    pub sha256: String,
    /// The size in bytes.
    pub size: u64,
    /// The time when a run with the bundle was last submitted.
    pub used: SystemTime,
    /// True if the user removed the last run with the bundle and has submitted none since.
    released: bool,
    /// The size of the ready copy in bytes, if there is one.
    copy: Option<u64>,
}

impl KeptBundle {
    /// The size of the bundle with its copy.
    fn bytes(&self) -> u64 {
        self.size.saturating_add(self.copy.unwrap_or(0))
    }
}

/// A number of items and their size in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of items.
    pub count: u64,
    /// The total size in bytes.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The disk usage of a folder of bundles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The bundles.
    pub bundles: Amount,
    /// The ready copies of the bundles.
    pub ready_copies: Amount,
}

impl Usage {
    /// The total in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bundles.bytes.saturating_add(self.ready_copies.bytes)
    }
}

/// The result of releasing a bundle after its last run was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The bundle was removed, which freed this number of bytes.
    Freed(u64),
    /// Terminating pods still use the bundle. It is removed after them.
    Later(u64),
    /// The bundle is kept because other runs use it or are about to use it, or it does not exist.
    Stays,
}

impl Kept {
    /// Returns the bundles in this folder, which does not have to exist.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The current disk usage.
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

    /// Removes the bundle of a removed run that was submitted at `submitted`, if no other run uses
    /// it. A bundle that was used later is kept, because a run that is not submitted yet is about
    /// to use it.
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
