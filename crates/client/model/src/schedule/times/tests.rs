//! Times across clock changes, ends of months and leap years, and a comparison
//! with a slow reference implementation that checks every minute.
#![allow(clippy::unwrap_used)]

use proptest::{collection::btree_set, option, prelude::*, sample::select};

use super::*;
use crate::schedule::time_zone;

const NEW_YORK: &str = "America/New_York";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The first times of a schedule after a time.
fn first(schedule: &str, zone: &str, after: &str, count: usize) -> Vec<Timestamp> {
    let schedule: Schedule = schedule.parse().unwrap();
    let times = schedule.times(at(after), time_zone(zone).unwrap());
    let next = |time: &Timestamp| times.after(*time);
    std::iter::successors(next(&at(after)), next)
        .take(count)
        .collect()
}

fn assert_first(schedule: &str, zone: &str, after: &str, expected: &[&str]) {
    let expected: Vec<Timestamp> = expected.iter().map(|text| at(text)).collect();
    let found = first(schedule, zone, after, expected.len());
    assert_eq!(found, expected, "{schedule} in {zone} after {after}");
}

#[test]
fn skipped_local_times_do_not_occur() {
    // On 8 March 2026, 3:00 follows 1:59.
    assert_first(
        "30 2 * * *",
        NEW_YORK,
        "2026-03-06T12:00:00-05:00",
        &["2026-03-07T02:30:00-05:00", "2026-03-09T02:30:00-04:00"],
    );
    assert_first(
        "0 * * * *",
        NEW_YORK,
        "2026-03-08T00:59:00-05:00",
        &["2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00"],
    );
    // A day without midnight, and a day that is skipped entirely.
    assert_first(
        "0 0 * * *",
        "America/Sao_Paulo",
        "2018-11-02T12:00:00-03:00",
        &["2018-11-03T00:00:00-03:00", "2018-11-05T00:00:00-02:00"],
    );
    assert_first(
        "0 12 30 12 *",
        "Pacific/Apia",
        "2011-12-01T00:00:00Z",
        &["2012-12-30T12:00:00+14:00"],
    );
}

#[test]
fn repeated_local_times_occur_twice() {
    // On 1 November 2026, 1:00 follows 1:59.
    assert_first(
        "30 1 * * *",
        NEW_YORK,
        "2026-10-31T12:00:00-04:00",
        &[
            "2026-11-01T01:30:00-04:00",
            "2026-11-01T01:30:00-05:00",
            "2026-11-02T01:30:00-05:00",
        ],
    );
    assert_first(
        "*/30 2 * * *",
        "Europe/Berlin",
        "2026-10-25T00:15:00Z",
        &[
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T01:30:00Z",
            "2026-10-26T01:00:00Z",
        ],
    );
}

#[test]
fn clock_changes_by_half_an_hour() {
    // On 4 October 2026, 2:30 follows 1:59; on 5 April, 1:30 followed 1:59.
    assert_first(
        "0 2,3 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T12:00:00+10:30",
        &["2026-10-04T03:00:00+11:00", "2026-10-05T02:00:00+11:00"],
    );
    assert_first(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T12:00:00+11:00",
        &["2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30"],
    );
}

#[test]
fn leap_days_and_ends_of_months() {
    assert_first(
        "0 0 29 2 *",
        "UTC",
        "2024-02-29T00:00:00Z",
        &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
    );
    // 2100 is not a leap year.
    assert_first(
        "0 0 29 2 *",
        "UTC",
        "2096-03-01T00:00:00Z",
        &["2104-02-29T00:00:00Z"],
    );
    assert_first(
        "59 23 31 * *",
        "UTC",
        "2026-03-31T23:59:00Z",
        &[
            "2026-05-31T23:59:00Z",
            "2026-07-31T23:59:00Z",
            "2026-08-31T23:59:00Z",
        ],
    );
    assert_first(
        "0 0 30 * *",
        "UTC",
        "2026-01-30T00:00:00Z",
        &["2026-03-30T00:00:00Z"],
    );
    assert!(first("59 23 31 2 *", "UTC", "2026-01-01T00:00:00Z", 1).is_empty());
    assert!(first(", * * * *", NEW_YORK, "2026-01-01T00:00:00Z", 1).is_empty());
}

#[test]
fn days_and_weekdays() {
    // If both are restricted, one match is sufficient. 13 November 2026 is a
    // Friday.
    assert_first(
        "0 0 13 * fri",
        "UTC",
        "2026-11-07T00:00:00Z",
        &[
            "2026-11-13T00:00:00Z",
            "2026-11-20T00:00:00Z",
            "2026-11-27T00:00:00Z",
            "2026-12-04T00:00:00Z",
            "2026-12-11T00:00:00Z",
            "2026-12-13T00:00:00Z",
        ],
    );
    // With an asterisk, only the other field restricts the days.
    assert_first(
        "0 0 13 * *",
        "UTC",
        "2026-11-07T00:00:00Z",
        &["2026-11-13T00:00:00Z", "2026-12-13T00:00:00Z"],
    );
    assert_first(
        "0 9 ? * mon-fri",
        "UTC",
        "2026-11-20T09:00:00Z",
        &["2026-11-23T09:00:00Z"],
    );
    // An asterisk with a step is a restriction, so Mondays match as well.
    assert_first(
        "0 0 */16 * mon",
        "UTC",
        "2026-11-01T00:00:00Z",
        &[
            "2026-11-02T00:00:00Z",
            "2026-11-09T00:00:00Z",
            "2026-11-16T00:00:00Z",
            "2026-11-17T00:00:00Z",
        ],
    );
}

#[test]
fn intervals_count_from_the_anchor() {
    let schedule: Schedule = "@every 90s".parse().unwrap();
    let times = schedule.times(at("2026-01-01T00:00:10.7Z"), TimeZone::UTC);
    let after = |text| times.after(at(text)).unwrap().to_string();
    assert_eq!(after("2026-01-01T00:00:10Z"), "2026-01-01T00:01:40Z");
    assert_eq!(after("2026-01-01T00:01:39.9Z"), "2026-01-01T00:01:40Z");
    assert_eq!(after("2026-01-01T00:01:40Z"), "2026-01-01T00:03:10Z");
    assert_eq!(after("2025-01-01T00:00:00Z"), "2026-01-01T00:01:40Z");
    let latest = |text| times.latest(at(text)).map(|time| time.to_string());
    assert_eq!(latest("2026-01-01T00:01:39Z"), None);
    assert_eq!(
        latest("2026-01-01T00:01:40Z").unwrap(),
        "2026-01-01T00:01:40Z"
    );
    assert_eq!(
        latest("2026-01-02T00:00:00Z").unwrap(),
        "2026-01-01T23:58:40Z"
    );
    assert_eq!(latest("2025-01-01T00:00:00Z"), None);
}

#[test]
fn the_latest_time_is_found_for_old_anchors() {
    let latest = |schedule: &str, since: &str, now: &str| {
        let schedule: Schedule = schedule.parse().unwrap();
        let times = schedule.times(at(since), TimeZone::UTC);
        times.latest(at(now)).map(|time| time.to_string())
    };
    let (old, now) = ("1970-01-01T00:00:00Z", "2026-11-23T08:15:30.5Z");
    assert_eq!(
        latest("* * * * *", old, now).unwrap(),
        "2026-11-23T08:15:00Z"
    );
    assert_eq!(
        latest("0 0 29 2 *", old, now).unwrap(),
        "2024-02-29T00:00:00Z"
    );
    // Over a weekend, where the intervals are irregular as well.
    assert_eq!(
        latest(
            "30 6-16/4 * * 1-5",
            "2026-11-19T06:30:00Z",
            "2026-11-23T06:29:00Z"
        )
        .unwrap(),
        "2026-11-20T14:30:00Z"
    );
    assert_eq!(latest("@daily", "2026-11-23T00:00:00Z", now), None);
    assert_eq!(latest("@daily", "2026-11-24T00:00:00Z", now), None);
}

/// A schedule as numbers; `None` for a field without restriction.
#[derive(Debug, Clone)]
struct Numbers([Option<std::collections::BTreeSet<i8>>; 5]);

impl Numbers {
    fn text(&self) -> String {
        let fields = self.0.iter().map(|field| match field {
            None => "*".to_owned(),
            Some(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                numbers.join(",")
            }
        });
        fields.collect::<Vec<_>>().join(" ")
    }

    fn matches(&self, time: Timestamp, zone: &TimeZone) -> bool {
        let local = time.to_zoned(zone.clone());
        let [minutes, hours, days, months, weekdays] = &self.0;
        let has = |field: &Option<std::collections::BTreeSet<i8>>, number| {
            field
                .as_ref()
                .is_none_or(|numbers| numbers.contains(&number))
        };
        let day = has(days, local.day());
        let weekday = has(weekdays, local.weekday().to_sunday_zero_offset());
        let is_day = match (days, weekdays) {
            (Some(_), Some(_)) => day || weekday,
            _ => day && weekday,
        };
        let is_time = has(minutes, local.minute()) && has(hours, local.hour());
        is_time && is_day && has(months, local.month()) && local.second() == 0
    }
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let field = |least: i8, greatest: i8| option::weighted(0.6, btree_set(least..=greatest, 1..4));
    (
        field(0, 59),
        field(0, 23),
        field(1, 31),
        field(1, 12),
        field(0, 6),
    )
        .prop_map(|(minutes, hours, days, months, weekdays)| {
            Numbers([minutes, hours, days, months, weekdays])
        })
}

const ZONES: &[&str] = &[
    "UTC",
    NEW_YORK,
    "Europe/Berlin",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/St_Johns",
];
/// Half of the times are near clock changes in one of the zones.
const CHANGES: &[i64] = &[
    1_772_953_200,
    1_793_512_800,
    1_774_746_000,
    1_792_890_000,
    1_541_300_400,
    1_325_239_200,
    1_791_041_400,
];

fn starts() -> impl Strategy<Value = i64> {
    prop_oneof![
        1_000_000_000..2_000_000_000_i64,
        (select(CHANGES), -90_000..90_000_i64).prop_map(|(change, near)| change + near),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_next_time_is_the_first_match(
        numbers in numbers(), zone in select(ZONES), start in starts(),
    ) {
        let zone = time_zone(zone).unwrap();
        let schedule: Schedule = numbers.text().parse().unwrap();
        let start = Timestamp::from_second(start).unwrap();
        let next = schedule.times(start, zone.clone()).after(start);
        if let Some(next) = next {
            prop_assert!(next > start && numbers.matches(next, &zone), "{next}");
        }
        // No zone here has an offset with a fraction of a minute.
        let minute = start.as_second().div_euclid(60) * 60 + 60;
        let until = next.map_or(i64::MAX, Timestamp::as_second).min(minute + 5 * 86_400);
        for between in (minute..until).step_by(60) {
            let between = Timestamp::from_second(between).unwrap();
            prop_assert!(!numbers.matches(between, &zone), "{between} comes before {next:?}");
        }
    }

    #[test]
    fn the_next_time_follows_the_latest(
        numbers in numbers(), zone in select(ZONES), start in starts(), past in 0..100_000_000_i64,
    ) {
        let zone = time_zone(zone).unwrap();
        let schedule: Schedule = numbers.text().parse().unwrap();
        let start = Timestamp::from_second(start).unwrap();
        let now = start.checked_add(SignedDuration::from_secs(past)).unwrap();
        let times = schedule.times(start, zone);
        match times.latest(now) {
            Some(latest) => {
                prop_assert!(start < latest && latest <= now);
                prop_assert_eq!(times.after(latest), times.after(now));
            }
            None => prop_assert!(times.after(start).is_none_or(|next| next > now)),
        }
    }
}
