//! Selects bundles to remove, and removes them.

use std::{
    io,
    time::{Duration, SystemTime},
};

use super::{Kept, KeptBundle, Uses};

/// The time for which a bundle counts as used after its last use, regardless of the cluster's
/// objects, because a run with it may be in submission.
const SUBMIT_GRACE: Duration = Duration::from_secs(10 * 60);
/// The time to keep an unreferenced bundle for the next run of the same code.
const UNUSED_FOR: Duration = Duration::from_secs(24 * 3600);

/// The parts of a bundle to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// The ready copy.
    Copy,
    /// The bundle and its copy.
    All,
}

/// Selects the parts of bundles to remove, least recently used first. Copies are removed before
/// bundles, because they only save time. Pure.
pub(super) fn choose<'a>(
    bundles: &'a [KeptBundle],
    uses: &Uses,
    now: SystemTime,
    limit: u64,
) -> Vec<(&'a KeptBundle, Removal)> {
    let sum = bundles.iter().map(KeptBundle::bytes);
    let mut left = sum.fold(0, u64::saturating_add);
    // If the clock was set back, bundles do not count as old.
    let age = |bundle: &KeptBundle| now.duration_since(bundle.used).unwrap_or_default();
    let is_unused = |bundle: &KeptBundle| {
        let is_used = uses.is_needed(&bundle.sha256) || uses.is_referred(&bundle.sha256);
        !is_used && (bundle.released || age(bundle) > UNUSED_FOR)
    };
    let (unused, used): (Vec<_>, Vec<_>) = bundles.iter().partition(|bundle| is_unused(bundle));
    let mut chosen = Vec::new();
    for bundle in unused {
        left = left.saturating_sub(bundle.bytes());
        chosen.push((bundle, Removal::All));
    }
    for bundle in &used {
        if left > limit
            && let Some(bytes) = bundle.copy
        {
            left = left.saturating_sub(bytes);
            chosen.push((*bundle, Removal::Copy));
        }
    }
    for bundle in &used {
        let is_needed = uses.is_needed(&bundle.sha256) || age(bundle) <= SUBMIT_GRACE;
        if left > limit && !is_needed {
            left = left.saturating_sub(bundle.size);
            chosen.push((*bundle, Removal::All));
        }
    }
    chosen
}

impl Kept {
    /// Removes unused bundles and bundles that exceed the limit. Returns the number of freed bytes.
    ///
    /// # Errors
    /// The folder cannot be read, or a file cannot be removed.
    pub(super) fn collect(&self, uses: &Uses, now: SystemTime) -> io::Result<u64> {
        self.recover(now)?;
        let bundles = self.bundles()?;
        let limit = self.limit(self.usage()?.bytes()).bytes;
        let mut freed: u64 = 0;
        for (bundle, removal) in choose(&bundles, uses, now, limit) {
            let bytes = match removal {
                Removal::Copy => {
                    self.remove_copies(&bundle.sha256)?;
                    bundle.copy.unwrap_or(0)
                }
                Removal::All if self.remove(bundle)? => bundle.size,
                Removal::All => continue,
            };
            freed = freed.saturating_add(bytes);
            tracing::info!(sha256 = bundle.sha256, bytes, ?removal, "removed a bundle");
        }
        // Copies of bundles that other processes have removed.
        let is_known = |sha256: &str| bundles.iter().any(|bundle| bundle.sha256 == sha256);
        for copy in self.copies().iter().filter(|copy| !is_known(&copy.sha256)) {
            self.remove_copy(copy)?;
            freed = freed.saturating_add(copy.bytes);
        }
        Ok(freed)
    }
}
