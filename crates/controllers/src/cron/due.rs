//! Which of a schedule's times is due: only the latest of those that were
//! missed, and none that is too late.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use longshore_model::schedule::Schedule;

/// So many missed times are told of: the clock may be wrong.
const MANY: usize = 100;

/// What is known of a schedule's past.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    /// The time of the last Job; without one, when the CronJob was made.
    pub(crate) anchor: Timestamp,
    /// When the schedule was changed, if that was seen. What the new one would
    /// have meant before then is not due.
    pub(crate) changed: Option<Timestamp>,
    /// How late a Job may be.
    pub(crate) deadline: Option<SignedDuration>,
}

/// What is due now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// There is no such time, now or ever.
    Never,
    /// Nothing.
    Nothing,
    /// A time.
    At {
        /// The time.
        time: Timestamp,
        /// Whether more than a hundred have been missed.
        many: bool,
    },
    /// A time, but it is too late for it.
    TooLate(Timestamp),
}

/// What is due, and when to look again.
pub(crate) fn due(
    schedule: &Schedule,
    zone: TimeZone,
    past: &Past,
    now: Timestamp,
) -> (Due, Option<Timestamp>) {
    let times = schedule.times(past.anchor, zone);
    if times.after(past.anchor).is_none() {
        return (Due::Never, None);
    }
    let next = times.after(now);
    let floor = past
        .changed
        .map_or(past.anchor, |changed| changed.max(past.anchor));
    let Some(time) = times.latest(now).filter(|time| *time > floor) else {
        return (Due::Nothing, next);
    };
    let bound = past
        .deadline
        .and_then(|deadline| now.checked_sub(deadline).ok());
    if bound.is_some_and(|bound| time <= bound) {
        return (Due::TooLate(time), next);
    }
    let earliest = bound.map_or(floor, |bound| bound.max(floor));
    let missed = std::iter::successors(times.after(earliest), |time| times.after(*time));
    let many = missed
        .take_while(|time| *time <= now)
        .take(MANY + 1)
        .count()
        > MANY;
    (Due::At { time, many }, next)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-01-02T{text}Z").parse().unwrap()
    }

    fn past(anchor: &str, deadline: Option<i64>) -> Past {
        Past {
            anchor: at(anchor),
            changed: None,
            deadline: deadline.map(SignedDuration::from_secs),
        }
    }

    fn decide(schedule: &str, past: &Past, now: &str) -> (Due, Option<Timestamp>) {
        due(&schedule.parse().unwrap(), TimeZone::UTC, past, at(now))
    }

    fn one(time: &str) -> Due {
        let (time, many) = (at(time), false);
        Due::At { time, many }
    }

    #[test]
    fn the_latest_that_was_missed_is_due() {
        let past = past("10:00:00", None);
        assert_eq!(
            decide("0 * * * *", &past, "10:59:59.9"),
            (Due::Nothing, Some(at("11:00:00")))
        );
        assert_eq!(
            decide("0 * * * *", &past, "11:00:00"),
            (one("11:00:00"), Some(at("12:00:00")))
        );
        assert_eq!(
            decide("0 * * * *", &past, "14:30:00"),
            (one("14:00:00"), Some(at("15:00:00")))
        );
        // The clock went back.
        assert_eq!(
            decide("0 * * * *", &past, "08:30:00"),
            (Due::Nothing, Some(at("09:00:00")))
        );
        assert_eq!(
            decide("@every 7m", &past, "10:20:00"),
            (one("10:14:00"), Some(at("10:21:00")))
        );
        assert_eq!(decide("0 0 31 2 *", &past, "14:30:00"), (Due::Never, None));
    }

    #[test]
    fn what_is_too_late_is_told() {
        assert_eq!(
            decide("0 * * * *", &past("10:00:00", Some(60)), "11:00:59").0,
            one("11:00:00")
        );
        assert_eq!(
            decide("0 * * * *", &past("10:00:00", Some(60)), "11:01:00"),
            (Due::TooLate(at("11:00:00")), Some(at("12:00:00")))
        );
        // However short the deadline, @every keeps its beat.
        assert_eq!(
            decide("@every 1m", &past("10:00:00", Some(5)), "10:03:01").0,
            one("10:03:00")
        );
        assert_eq!(
            decide("@every 1m", &past("10:00:00", Some(i64::MAX)), "10:03:01").0,
            one("10:03:00")
        );
    }

    #[test]
    fn more_than_a_hundred_are_many() {
        let many = |deadline, now| match decide("* * * * *", &past("10:00:00", deadline), now).0 {
            Due::At { many, .. } => many,
            other => unreachable!("{other:?}"),
        };
        assert!(!many(None, "11:40:59") && many(None, "11:41:00"));
        assert!(!many(Some(600), "20:00:00"));
        assert!(many(Some(100 * 60 + 1), "20:00:00"));
    }

    #[test]
    fn a_new_schedule_means_nothing_before_it_was_written() {
        let changed = Past {
            changed: Some(at("14:30:00")),
            ..past("10:00:00", None)
        };
        assert_eq!(
            decide("0 * * * *", &changed, "14:31:00"),
            (Due::Nothing, Some(at("15:00:00")))
        );
        assert_eq!(decide("0 * * * *", &changed, "15:00:01").0, one("15:00:00"));
    }
}
