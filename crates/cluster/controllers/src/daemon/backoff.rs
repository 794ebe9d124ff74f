//! Delays the replacement of pods that fail repeatedly.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;

/// The delay after the first failed pod of a node.
const FIRST: Duration = Duration::from_secs(1);
/// The maximum delay.
const LONGEST: Duration = Duration::from_mins(15);
/// A node without failed pods for this long starts with the first delay.
const FORGET_AFTER: Duration = Duration::from_mins(30);

/// The UID and generation of a DaemonSet, and a node.
type Place = (String, i64, String);

/// The delays by DaemonSet and node.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: HashMap<Place, (Duration, Timestamp)>,
}

impl Backoff {
    /// Returns the delay before a failed pod is replaced, or `None` if it can be replaced
    /// immediately, which increases the delay for the next failure.
    pub(super) fn failed(
        &mut self,
        uid: &str,
        generation: i64,
        node: &str,
        now: Timestamp,
    ) -> Option<Duration> {
        let since = |at: Timestamp| Duration::try_from(now.duration_since(at)).unwrap_or_default();
        self.failures
            .retain(|_, (_, at)| since(*at) <= FORGET_AFTER);
        let place = (uid.to_owned(), generation, node.to_owned());
        let delay = match self.failures.get(&place) {
            None => FIRST,
            Some((delay, at)) => {
                let left = delay.saturating_sub(since(*at));
                if !left.is_zero() {
                    return Some(left);
                }
                delay.saturating_mul(2).min(LONGEST)
            }
        };
        self.failures.insert(place, (delay, now));
        None
    }
}
