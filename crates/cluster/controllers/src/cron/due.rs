//! Determines which scheduled time is due: only the latest missed time, and none
//! past its deadline.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use longshore_model::schedule::Schedule;

/// The maximum number of missed times without a warning. More indicate that the clock may be wrong.
const MAX_MISSED: usize = 100;

/// The history of a schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    /// The time of the last Job, or the creation time of the CronJob if there is
    /// none.
    pub(crate) anchor: Timestamp,
    /// The time at which the schedule changed, if the controller observed it. Earlier times are not
    /// due.
    pub(crate) changed: Option<Timestamp>,
    /// The starting deadline.
    pub(crate) deadline: Option<SignedDuration>,
}

/// The scheduled time that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// The schedule has no times.
    Never,
    /// Nothing is due.
    Nothing,
    /// A time is due.
    At {
        /// The scheduled time.
        time: Timestamp,
        /// True if more than a hundred times were missed.
        too_many: bool,
    },
    /// The deadline of this time has passed.
    TooLate(Timestamp),
}

/// Returns the time that is due, and the time until the next check.
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
    let too_many = missed
        .take_while(|time| *time <= now)
        .take(MAX_MISSED + 1)
        .count()
        > MAX_MISSED;
    (Due::At { time, too_many }, next)
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
        let (time, too_many) = (at(time), false);
        Due::At { time, too_many }
    }

    #[test]
    fn the_latest_missed_time_is_due() {
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
        // The clock was set back.
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
    fn a_time_past_its_deadline_is_reported() {
        assert_eq!(
            decide("0 * * * *", &past("10:00:00", Some(60)), "11:00:59").0,
            one("11:00:00")
        );
        assert_eq!(
            decide("0 * * * *", &past("10:00:00", Some(60)), "11:01:00"),
            (Due::TooLate(at("11:00:00")), Some(at("12:00:00")))
        );
        // `@every` keeps its interval even with a short deadline.
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
    fn more_than_a_hundred_missed_times_are_too_many() {
        let too_many = |deadline, now| match decide("* * * * *", &past("10:00:00", deadline), now).0
        {
            Due::At { too_many, .. } => too_many,
            other => unreachable!("{other:?}"),
        };
        assert!(!too_many(None, "11:40:59") && too_many(None, "11:41:00"));
        assert!(!too_many(Some(600), "20:00:00"));
        assert!(too_many(Some(100 * 60 + 1), "20:00:00"));
    }

    #[test]
    fn a_new_schedule_has_no_times_before_its_change() {
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
