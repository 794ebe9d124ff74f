//! Cron schedules of CronJobs and the times at which they are due.
//!
//! The syntax and the error messages are the same as in the library that Kubernetes uses (the
//! standard parser of robfig/cron). Validation and execution share this parser, so they always
//! agree.

mod duration;
mod error;
mod field;
mod times;
mod zone;

use std::{str::FromStr, time::Duration};

pub use error::ScheduleError;
pub use times::Times;
pub use zone::time_zone;

use field::{Field, Fields};

/// A cron schedule: `*/5 * * * *`, `@daily`, `@every 1h30m`.
///
/// ```
/// use longshore_model::schedule::{Schedule, time_zone};
///
/// let nightly: Schedule = "30 2 * * mon-fri".parse()?;
/// let since = "2026-01-02T03:00:00Z".parse()?; // a Friday
/// let times = nightly.times(since, time_zone("Europe/Berlin").ok_or("no such zone")?);
/// let next = times.after(since).ok_or("never")?;
/// assert_eq!(next.to_string(), "2026-01-05T01:30:00Z");
///
/// let error = "61 * * * *".parse::<Schedule>().unwrap_err();
/// assert_eq!(error.to_string(), "end of range (61) above maximum (59): 61");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// All minutes that match the fields.
    Fields(Fields),
    /// A fixed interval of whole seconds, at least one.
    Every(Duration),
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        if text.is_empty() {
            return Err(ScheduleError::Empty);
        }
        let text = after_zone(text)?;
        if text.starts_with('@') {
            return descriptor(text);
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = words.as_slice() else {
            return Err(ScheduleError::Count {
                found: words.len(),
                fields: words.join(" "),
            });
        };
        Ok(Self(Kind::Fields(Fields {
            minutes: Field::parse(minute, &field::MINUTES)?,
            hours: Field::parse(hour, &field::HOURS)?,
            days: Field::parse(day, &field::DAYS)?,
            months: Field::parse(month, &field::MONTHS)?,
            weekdays: Field::parse(weekday, &field::WEEKDAYS)?,
        })))
    }
}

/// Returns the text after `TZ=…`. CronJobs reject a time zone here, but only
/// after parsing it.
fn after_zone(text: &str) -> Result<&str, ScheduleError> {
    let zoned = ["TZ=", "CRON_TZ="]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    let Some(zoned) = zoned else {
        return Ok(text);
    };
    let (zone, rest) = zoned.split_once(' ').unwrap_or((zoned, ""));
    if time_zone(zone).is_none() {
        return Err(ScheduleError::Zone(zone.to_owned()));
    }
    Ok(rest.trim())
}

fn descriptor(text: &str) -> Result<Schedule, ScheduleError> {
    if let Some(span) = text.strip_prefix("@every ") {
        let nanoseconds = duration::parse(span).map_err(|problem| ScheduleError::Every {
            text: text.to_owned(),
            problem,
        })?;
        let seconds = u64::try_from(nanoseconds / 1_000_000_000).unwrap_or_default();
        return Ok(Schedule(Kind::Every(Duration::from_secs(seconds.max(1)))));
    }
    match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return Err(ScheduleError::Descriptor(text.to_owned())),
    }
    .parse()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn valid_schedules_are_parsed() {
        for good in [
            "* * * * *",
            "*/5 0-12/2 1,15 jan-Mar ?",
            "@daily",
            "@annually",
            "@every 1h30m",
            "@every -1.5s",
            "0 0 * * SUN",
            "5/15 * * * *",
            " 0\t0  * * * ",
            "+5 * * * *",
            "TZ=Europe/Berlin 0 0 * * *",
            "CRON_TZ=UTC @hourly",
            ", * * * *",
        ] {
            assert!(good.parse::<Schedule>().is_ok(), "{good}");
        }
        let read = |text: &str| text.parse::<Schedule>().unwrap();
        assert_eq!(read("@weekly"), read("0 0 ? * sun"));
        assert_eq!(read("10-20/5 * * * *"), read("10,15,20 * * * *"));
        assert_eq!(read("50/5 * * * *"), read("50,55 * * * *"));
        assert_eq!(read("@every 0"), read("@every 1s"));
        assert_eq!(read("@every 90m0.9s"), read("@every 1h30m"));
    }

    #[test]
    fn invalid_schedules_are_rejected() {
        for (bad, problem) in [
            ("", "empty spec string"),
            ("* *", "expected exactly 5 fields, found 2: [* *]"),
            (
                "0 * * * * *",
                "expected exactly 5 fields, found 6: [0 * * * * *]",
            ),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("*/-5 * * * *", "negative number (-5) not allowed: -5"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "-5 * * * *",
                "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax",
            ),
            (
                "* * L * *",
                "failed to parse int from L: strconv.Atoi: parsing \"L\": invalid syntax",
            ),
            (
                "99999999999999999999 * * * *",
                "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \
                 \"99999999999999999999\": value out of range",
            ),
            ("@noon", "unrecognized descriptor: @noon"),
            ("@Daily", "unrecognized descriptor: @Daily"),
            ("@every", "unrecognized descriptor: @every"),
            (
                "@every 1d",
                "failed to parse duration @every 1d: time: unknown unit \"d\" in duration \"1d\"",
            ),
            (
                "TZ=Mars * * * * *",
                "provided bad location Mars: unknown time zone Mars",
            ),
        ] {
            let error = bad.parse::<Schedule>().unwrap_err();
            assert_eq!(error.to_string(), problem, "{bad}");
        }
    }
}
