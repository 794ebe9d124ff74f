//! Decides when to end pods whose command has ended while another container is still running. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

/// The times since which pods linger, by their UIDs, and the pods that were ended.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    since: BTreeMap<String, Instant>,
    ended: BTreeSet<String>,
    /// True if the server refuses to delete the pods.
    pub(super) is_refused: bool,
}

impl Lingering {
    /// Updates the lingering pods.
    pub(super) fn see<'a>(&mut self, uids: impl Iterator<Item = &'a str>, now: Instant) {
        let uids: BTreeSet<&str> = uids.collect();
        self.since.retain(|uid, _| uids.contains(uid.as_str()));
        for uid in uids {
            if !self.ended.contains(uid) {
                self.since.entry(uid.to_owned()).or_insert(now);
            }
        }
    }

    /// Returns true if there are lingering pods that were not ended yet.
    pub(super) fn is_any(&self) -> bool {
        !self.since.is_empty()
    }

    /// The pods that have lingered for this time. Each is returned once.
    pub(super) fn take_due(&mut self, limit: Duration, now: Instant) -> BTreeSet<String> {
        let since = self.since.iter();
        let due = since.filter(|(_, since)| now.duration_since(**since) >= limit);
        let due: BTreeSet<String> = due.map(|(uid, _)| uid.clone()).collect();
        self.since.retain(|uid, _| !due.contains(uid));
        self.ended.extend(due.iter().cloned());
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_ended_once_after_it_has_lingered() {
        const LIMIT: Duration = Duration::from_secs(5);
        let (begin, mut pods) = (Instant::now(), Lingering::default());
        pods.see(["a"].into_iter(), begin);
        pods.see(["a", "b"].into_iter(), begin + LIMIT / 2);
        assert!(pods.take_due(LIMIT, begin + LIMIT / 2).is_empty());
        assert!(pods.take_due(LIMIT, begin + LIMIT).contains("a"));
        pods.see(["a", "b"].into_iter(), begin + LIMIT);
        assert!(pods.is_any());
        // The pod `b` has ended by itself.
        pods.see(["a"].into_iter(), begin + LIMIT);
        assert!(!pods.is_any() && pods.take_due(LIMIT, begin + LIMIT * 9).is_empty());
    }
}
