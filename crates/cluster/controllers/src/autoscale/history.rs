//! Recent recommendations for an autoscaler, and recent changes of its replicas. Pure: the current
//! time is an argument.

use jiff::{SignedDuration, Timestamp};

/// The default time in seconds for which a recommendation of more replicas applies.
pub(super) const SCALE_DOWN_WINDOW: i32 = 300;
/// The maximum number of remembered recommendations, and of changes in each direction.
const MAX_REMEMBERED: usize = 4096;

/// A number of replicas at a time.
type Entry = (i32, Timestamp);

/// The history of an autoscaler.
#[derive(Debug, Default)]
pub(super) struct History {
    recommendations: Vec<Entry>,
    /// The increases of the replicas.
    ups: Vec<Entry>,
    /// The decreases of the replicas.
    downs: Vec<Entry>,
}

fn before(now: Timestamp, seconds: i32) -> Timestamp {
    let window = SignedDuration::from_secs(i64::from(seconds.max(0)));
    now.checked_sub(window).unwrap_or(Timestamp::MIN)
}

fn push(entries: &mut Vec<Entry>, entry: Entry) {
    if entries.len() >= MAX_REMEMBERED {
        entries.remove(0);
    }
    entries.push(entry);
}

fn sum(entries: &[Entry], seconds: i32, now: Timestamp) -> i32 {
    let cutoff = before(now, seconds);
    let recent = entries.iter().filter(|(_, at)| *at > cutoff);
    recent.fold(0, |sum, (change, _)| sum.saturating_add(*change))
}

impl History {
    /// Records the current replicas as the first recommendation unless one is recorded.
    pub(super) fn begin(&mut self, replicas: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommendations.push((replicas, now));
        }
    }

    /// Records a recommendation. Returns the highest one of the window.
    pub(super) fn stabilize(&mut self, desired: i32, seconds: i32, now: Timestamp) -> i32 {
        let cutoff = before(now, seconds);
        self.recommendations.retain(|(_, at)| *at >= cutoff);
        let recent = self.recommendations.iter().map(|(replicas, _)| *replicas);
        let highest = recent.fold(desired, i32::max);
        push(&mut self.recommendations, (desired, now));
        highest
    }

    /// Records a recommendation. Returns the number that is closest to the current one
    /// between the lowest recommendation of the window for increases and the highest one of
    /// the window for decreases.
    pub(super) fn stabilize_both(
        &mut self,
        (current, desired): (i32, i32),
        (up_seconds, down_seconds): (i32, i32),
        now: Timestamp,
    ) -> i32 {
        let (up, down) = (before(now, up_seconds), before(now, down_seconds));
        self.recommendations
            .retain(|(_, at)| *at >= up || *at >= down);
        let (mut lowest, mut highest) = (desired, desired);
        for (replicas, at) in &self.recommendations {
            if *at > up {
                lowest = lowest.min(*replicas);
            }
            if *at > down {
                highest = highest.max(*replicas);
            }
        }
        push(&mut self.recommendations, (desired, now));
        current.max(lowest).min(highest)
    }

    /// Records a change of the replicas. Changes before the window, which is the longest
    /// period of the rules, are forgotten.
    pub(super) fn record_change(&mut self, from: i32, to: i32, seconds: i32, now: Timestamp) {
        let list = if to > from {
            &mut self.ups
        } else {
            &mut self.downs
        };
        let cutoff = before(now, seconds);
        list.retain(|(_, at)| *at >= cutoff);
        push(list, (to.saturating_sub(from).saturating_abs(), now));
    }

    /// The number of replicas at the beginning of the last period.
    pub(super) fn replicas_before(&self, current: i32, seconds: i32, now: Timestamp) -> i32 {
        let (added, removed) = (sum(&self.ups, seconds, now), sum(&self.downs, seconds, now));
        current.saturating_sub(added).saturating_add(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::testing::at;

    /// Recommendations with their ages in minutes.
    fn history(recommendations: &[(i32, i64)]) -> History {
        let entries = recommendations.iter();
        let entries = entries.map(|(replicas, minutes)| (*replicas, at(-minutes * 60)));
        History {
            recommendations: entries.collect(),
            ..History::default()
        }
    }

    #[test]
    fn the_highest_recent_recommendation_applies() {
        type Case<'a> = (&'a [(i32, i64)], i32, i32);
        let cases: [Case<'_>; 5] = [
            (&[], 5, 5),
            (&[(4, 2), (5, 1)], 3, 5),
            (&[(1, 2), (2, 1)], 3, 3),
            (&[(10, 10), (9, 9)], 3, 3),
            (&[(10, 10), (4, 1), (5, 2), (9, 9)], 3, 5),
        ];
        for (recommendations, desired, stabilized) in cases {
            let mut history = history(recommendations);
            assert_eq!(history.stabilize(desired, 300, at(0)), stabilized);
            assert_eq!(history.recommendations.last(), Some(&(desired, at(0))));
        }
    }

    #[test]
    fn each_direction_has_its_window() {
        // recommendations, current, desired, window up, window down: stabilized
        type Case<'a> = (&'a [(i32, i64)], i32, i32, i32, i32, i32);
        let cases: [Case<'_>; 11] = [
            (&[], 100, 5, 0, 0, 5),
            (&[(4, 2), (5, 1)], 100, 3, 0, 180, 5),
            (&[(4, 2), (5, 1)], 1, 7, 300, 0, 4),
            (&[(1, 2), (2, 1)], 100, 3, 300, 0, 3),
            (&[(4, 2), (5, 1)], 1, 3, 0, 300, 3),
            (&[(10, 10), (9, 9)], 100, 3, 0, 0, 3),
            (&[(10, 10), (9, 9)], 1, 100, 0, 0, 100),
            (&[(10, 10), (4, 1), (5, 2), (9, 9)], 100, 3, 0, 180, 5),
            (&[(10, 100), (6, 1), (5, 2), (9, 3)], 1, 100, 300, 0, 5),
            (&[(2, 100), (3, 3)], 2, 1, 300, 300, 2),
            (&[(2, 100), (1, 3)], 2, 3, 300, 300, 2),
        ];
        for (recommendations, current, desired, up, down, stabilized) in cases {
            let mut history = history(recommendations);
            let found = history.stabilize_both((current, desired), (up, down), at(0));
            assert_eq!(found, stabilized, "{recommendations:?} {current} {desired}");
        }
    }

    #[test]
    fn changes_count_for_their_period() {
        let mut history = History::default();
        history.record_change(1, 4, 60, at(-120));
        history.record_change(4, 9, 60, at(-60));
        history.record_change(9, 7, 60, at(-30));
        assert_eq!(history.replicas_before(7, 20, at(0)), 7);
        assert_eq!(history.replicas_before(7, 31, at(0)), 9);
        assert_eq!(history.replicas_before(7, 61, at(0)), 4);
        // A further change removes changes that are older than the longest period.
        history.record_change(7, 8, 60, at(0));
        assert_eq!(history.ups.len(), 2);
    }

    #[test]
    fn the_number_of_entries_is_limited() {
        let mut history = History::default();
        for _ in 0..MAX_REMEMBERED + 10 {
            history.stabilize(1, 300, at(0));
        }
        assert_eq!(history.recommendations.len(), MAX_REMEMBERED);
    }
}
