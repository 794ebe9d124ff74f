//! The writes that a cache has not reported yet. Pure: the current time is an argument.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::key::Key;

/// The maximum time to wait until a cache reports a write. An object that is deleted right after
/// the write may never be reported.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// For each Service, the last version that the controller wrote.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The newest version that the cache has reported.
    seen: u64,
    expected: HashMap<Key, (u64, Instant)>,
}

impl Written {
    /// Records that the cache has reported a version.
    pub(super) fn saw(&mut self, version: &str) {
        self.seen = self.seen.max(version.parse().unwrap_or(0));
    }

    /// Records a write.
    pub(super) fn wrote(&mut self, key: &Key, version: &str, now: Instant) {
        let Ok(version) = version.parse() else { return };
        if version > self.seen {
            self.expected.insert(key.clone(), (version, now + MAX_WAIT));
        }
    }

    /// Returns the maximum time to wait until the cache has the last write.
    pub(super) fn wait(&mut self, key: &Key, now: Instant) -> Option<Duration> {
        let (version, deadline) = *self.expected.get(key)?;
        if version <= self.seen || deadline <= now {
            self.expected.remove(key);
            return None;
        }
        Some(deadline - now)
    }

    /// Forgets a deleted Service.
    pub(super) fn forget(&mut self, key: &Key) {
        self.expected.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_expected_until_the_cache_has_it() {
        let (key, now) = (Key::new("a", "web"), Instant::now());
        let mut written = Written::default();
        assert_eq!(written.wait(&key, now), None);
        written.saw("6");
        written.wrote(&key, "5", now);
        assert_eq!(written.wait(&key, now), None);
        written.wrote(&key, "9", now);
        written.saw("8");
        assert_eq!(written.wait(&key, now), Some(MAX_WAIT));
        written.saw("10");
        assert_eq!(written.wait(&key, now), None);
        written.wrote(&key, "11", now);
        assert_eq!(written.wait(&key, now + MAX_WAIT), None);
    }
}
