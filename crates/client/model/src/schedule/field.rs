//! The fields of a schedule; each is a set of small numbers.

use super::ScheduleError;

/// The valid values of a field.
pub(super) struct Bounds {
    least: u64,
    greatest: u64,
    /// The names of the numbers, starting with the minimum.
    names: &'static [&'static str],
}

const fn numbers(least: u64, greatest: u64) -> Bounds {
    named(least, greatest, &[])
}

const fn named(least: u64, greatest: u64, names: &'static [&'static str]) -> Bounds {
    Bounds {
        least,
        greatest,
        names,
    }
}

pub(super) const MINUTES: Bounds = numbers(0, 59);
pub(super) const HOURS: Bounds = numbers(0, 23);
pub(super) const DAYS: Bounds = numbers(1, 31);
pub(super) const MONTHS: Bounds = named(
    1,
    12,
    &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
);
pub(super) const WEEKDAYS: Bounds = named(0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]);

/// A set of numbers below 64, and whether it was written as an asterisk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Field {
    bits: u64,
    starred: bool,
}

/// The five fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) minutes: Field,
    pub(super) hours: Field,
    pub(super) days: Field,
    pub(super) months: Field,
    pub(super) weekdays: Field,
}

impl Fields {
    /// Returns true if a day matches. If both the day of the month and the day of the week are
    /// restricted, one match is sufficient.
    pub(super) fn has_day(&self, day: i8, weekday: i8) -> bool {
        let (day, weekday) = (self.days.has(day), self.weekdays.has(weekday));
        if self.days.starred || self.weekdays.starred {
            day && weekday
        } else {
            day || weekday
        }
    }
}

impl Field {
    /// Parses a list such as `1,5-9,*/2`.
    pub(super) fn parse(text: &str, bounds: &Bounds) -> Result<Self, ScheduleError> {
        let mut field = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let part = range(part, bounds)?;
            field.bits |= part.bits;
            field.starred |= part.starred;
        }
        Ok(field)
    }

    pub(super) fn has(self, number: i8) -> bool {
        u32::try_from(number)
            .ok()
            .and_then(|number| self.bits.checked_shr(number))
            .is_some_and(|bits| bits & 1 == 1)
    }

    /// The smallest number that is at least `from`.
    pub(super) fn from(self, from: i8) -> Option<i8> {
        let from = u32::try_from(from).ok()?;
        let bits = self.bits.checked_shr(from)?;
        let found = (bits != 0).then(|| from + bits.trailing_zeros())?;
        i8::try_from(found).ok()
    }
}

/// Parses `*`, `5` or `1-5`, optionally followed by a step such as `/2`.
fn range(text: &str, bounds: &Bounds) -> Result<Field, ScheduleError> {
    let (ends, step) = match text.split('/').collect::<Vec<_>>().as_slice() {
        [ends] => (*ends, None),
        [ends, step] => (*ends, Some(*step)),
        _ => return Err(ScheduleError::Slashes(text.to_owned())),
    };
    let ends: Vec<&str> = ends.split('-').collect();
    let mut starred = matches!(ends.first(), Some(&("*" | "?")));
    let (start, mut end) = match ends.as_slice() {
        _ if starred => (bounds.least, bounds.greatest),
        [only] => {
            let number = named_number(only, bounds)?;
            (number, number)
        }
        [first, last] => (named_number(first, bounds)?, named_number(last, bounds)?),
        [first, ..] => {
            named_number(first, bounds)?;
            return Err(ScheduleError::Hyphens(text.to_owned()));
        }
        [] => (0, 0),
    };
    let step = match step {
        None => 1,
        Some(step) => {
            let step = number(step)?;
            // `5/15` extends to the maximum.
            if ends.len() == 1 {
                end = bounds.greatest;
            }
            starred &= step <= 1;
            step
        }
    };
    let (least, greatest, text) = (bounds.least, bounds.greatest, text.to_owned());
    if start < least {
        return Err(ScheduleError::Below { start, least, text });
    }
    if end > greatest {
        return Err(ScheduleError::Above {
            end,
            greatest,
            text,
        });
    }
    if start > end {
        return Err(ScheduleError::Backwards { start, end, text });
    }
    if step == 0 {
        return Err(ScheduleError::Step(text));
    }
    let meant = (start..=end).filter(|number| (number - start).is_multiple_of(step));
    let bits = meant.fold(0, |bits, number| bits | 1 << number);
    Ok(Field { bits, starred })
}

fn named_number(text: &str, bounds: &Bounds) -> Result<u64, ScheduleError> {
    let mut names = bounds.names.iter().zip(bounds.least..);
    match names.find(|(name, _)| text.eq_ignore_ascii_case(name)) {
        Some((_, number)) => Ok(number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, ScheduleError> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};

    let number: i64 = text.parse().map_err(|error: std::num::ParseIntError| {
        let problem = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        let text = text.to_owned();
        ScheduleError::Number { text, problem }
    })?;
    u64::try_from(number).map_err(|_| {
        let text = text.to_owned();
        ScheduleError::Negative { number, text }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_asterisk_with_a_step_is_a_restriction() {
        let days = |text| Field::parse(text, &DAYS).unwrap();
        assert!(days("*").starred && days("?").starred && days("*/1").starred);
        assert!(days("3,*").starred);
        assert!(!days("*/2").starred && !days("1-31").starred);
        assert_eq!(days("*").bits, days("1-31").bits);
    }

    #[test]
    fn the_next_number_is_found() {
        let minutes = Field::parse("0,30-32,59", &MINUTES).unwrap();
        let found = [0, 1, 30, 31, 33, 59].map(|from| minutes.from(from));
        assert_eq!(
            found,
            [Some(0), Some(30), Some(30), Some(31), Some(59), Some(59)]
        );
        assert_eq!((minutes.from(60), minutes.from(64)), (None, None));
        assert!(minutes.has(59) && !minutes.has(58) && !minutes.has(-1));
    }
}
