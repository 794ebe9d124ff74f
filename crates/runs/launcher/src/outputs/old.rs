//! Removes the outputs of runs that no longer exist.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use super::{Outputs, OutputsError, files::KnownRun};

/// The time to keep the outputs of a run that was not removed with `longshore rm`, but by its `ttl`
/// or by another client.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

/// Returns true if a run's outputs can be removed if the run does not exist. If the clock was set
/// back, outputs do not count as old.
fn is_old(run: &KnownRun, now: SystemTime) -> bool {
    now.duration_since(run.changed)
        .is_ok_and(|age| age > KEPT_FOR)
}

impl Outputs {
    /// Returns true if there are outputs that can be removed if their runs do not exist.
    pub(crate) fn has_old(&self, now: SystemTime) -> Result<bool, OutputsError> {
        Ok(self.known_runs()?.iter().any(|run| is_old(run, now)))
    }

    /// Removes the old outputs of runs other than the existing ones, by namespace and name.
    /// Returns the number of freed bytes.
    pub(crate) fn remove_old(
        &self,
        existing: &BTreeSet<(String, String)>,
        now: SystemTime,
    ) -> Result<u64, OutputsError> {
        let lock = self.lock()?;
        lock.lock()
            .map_err(OutputsError::system("lock", self.root()))?;
        let known = self.known_runs()?;
        let is_gone = |run: &&KnownRun| {
            is_old(run, now) && !existing.contains(&(run.namespace.clone(), run.run.clone()))
        };
        let mut gone = known.iter().filter(is_gone).peekable();
        if gone.peek().is_none() {
            return Ok(0);
        }
        for run in gone {
            self.forget_run(run)?;
        }
        self.remove_unused()
    }
}
