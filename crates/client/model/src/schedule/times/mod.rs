//! The times of a schedule in a time zone.

use std::time::Duration;

use jiff::{
    SignedDuration, Timestamp, ToSpan,
    civil::{Date, DateTime},
    tz::{Offset, TimeZone},
};

use super::{Kind, Schedule, field::Fields};

/// The time span of the search. Two leap days are at most eight years apart.
const MAX_SEARCH: Duration = Duration::from_secs(9 * 366 * 24 * 3600);

/// The times of a [`Schedule`].
///
/// As in Kubernetes, a local time that is skipped by a clock change does not
/// occur, and a local time that is repeated occurs twice.
#[derive(Debug, Clone)]
pub struct Times<'a> {
    schedule: &'a Schedule,
    anchor: Timestamp,
    zone: TimeZone,
}

impl Schedule {
    /// The times in a time zone. `@every` counts from the anchor.
    #[must_use]
    pub fn times(&self, anchor: Timestamp, zone: TimeZone) -> Times<'_> {
        Times {
            schedule: self,
            anchor: truncate_to_seconds(anchor),
            zone,
        }
    }
}

impl Times<'_> {
    /// Returns the first time after `after`; `None` if the schedule is not due in the coming years,
    /// as with `0 0 31 2 *`.
    #[must_use]
    pub fn after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = truncate_to_seconds(after);
        match &self.schedule.0 {
            Kind::Fields(fields) => self.matching(fields, after),
            Kind::Every(span) => {
                let past = self.intervals(after, *span)?;
                self.nth(past.checked_add(1)?, *span)
            }
        }
    }

    /// The last time that is after the anchor and not after `now`.
    #[must_use]
    pub fn latest(&self, now: Timestamp) -> Option<Timestamp> {
        let now = truncate_to_seconds(now);
        match &self.schedule.0 {
            Kind::Fields(fields) => {
                let next = |at: i64| {
                    let found = self.matching(fields, Timestamp::from_second(at).ok()?);
                    found.filter(|found| *found <= now)
                };
                // Bisect the interval that contains the last time. This takes
                // about thirty steps, however old the anchor is.
                let (mut low, mut high) = (self.anchor.as_second(), now.as_second());
                next(low)?;
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    if next(middle).is_some() {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                next(low)
            }
            Kind::Every(span) => {
                let past = self.intervals(now, *span)?;
                (past > 0).then(|| self.nth(past, *span)).flatten()
            }
        }
    }

    /// The number of whole intervals from the anchor to a time; `None` if the
    /// time is earlier.
    fn intervals(&self, at: Timestamp, span: Duration) -> Option<u64> {
        let past = at.as_second().saturating_sub(self.anchor.as_second());
        u64::try_from(past)
            .unwrap_or_default()
            .checked_div(span.as_secs())
    }

    fn nth(&self, number: u64, span: Duration) -> Option<Timestamp> {
        let seconds = span.as_secs().checked_mul(number)?;
        let past = SignedDuration::from_secs(i64::try_from(seconds).ok()?);
        self.anchor.checked_add(past).ok()
    }

    /// Searches one period with a constant UTC offset after another. Within a
    /// period, local times map directly to points in time.
    fn matching(&self, fields: &Fields, after: Timestamp) -> Option<Timestamp> {
        let horizon = after.checked_add(MAX_SEARCH).unwrap_or(Timestamp::MAX);
        let mut after = after;
        while after < horizon {
            let offset = self.zone.to_offset(after.checked_add(1.second()).ok()?);
            let end = self
                .zone
                .following(after.checked_add(1.second()).ok()?)
                .map(|change| change.timestamp())
                .next()
                .unwrap_or(horizon)
                .min(horizon);
            if let Some(found) = in_period(fields, after, end, offset) {
                return Some(found);
            }
            // The start of the next period belongs to that period.
            after = end
                .checked_sub(1.second())
                .ok()?
                .max(after.checked_add(1.second()).ok()?);
        }
        None
    }
}

/// The first match after a time and before the end of the period.
fn in_period(
    fields: &Fields,
    after: Timestamp,
    end: Timestamp,
    offset: Offset,
) -> Option<Timestamp> {
    let (after, end) = (offset.to_datetime(after), offset.to_datetime(end));
    let mut date = after.date();
    while date <= end.date() {
        if !fields.months.has(date.month()) {
            date = next_month(date)?;
            continue;
        }
        let weekday = date.weekday().to_sunday_zero_offset();
        if fields.has_day(date.day(), weekday)
            && let Some(found) = in_day(fields, date, after)
        {
            return (found < end)
                .then(|| offset.to_timestamp(found).ok())
                .flatten();
        }
        date = date.tomorrow().ok()?;
    }
    None
}

fn next_month(date: Date) -> Option<Date> {
    date.last_of_month().tomorrow().ok()
}

/// The first match on a day after a time.
fn in_day(fields: &Fields, date: Date, after: DateTime) -> Option<DateTime> {
    let mut hour = if date == after.date() {
        after.hour()
    } else {
        0
    };
    while let Some(found) = fields.hours.from(hour) {
        let mut minute = 0;
        while let Some(at) = fields.minutes.from(minute) {
            let time = date.at(found, at, 0, 0);
            if time > after {
                return Some(time);
            }
            minute = at + 1;
        }
        hour = found + 1;
    }
    None
}

/// Truncates to whole seconds, the resolution of schedules.
fn truncate_to_seconds(at: Timestamp) -> Timestamp {
    let second = at.as_second() - i64::from(at.subsec_nanosecond() < 0);
    Timestamp::from_second(second).unwrap_or(at)
}

#[cfg(test)]
mod tests;
