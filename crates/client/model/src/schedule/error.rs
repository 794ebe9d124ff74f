//! The errors of schedules, with the messages of Kubernetes.

use thiserror::Error;

/// The reason why a schedule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The schedule is empty.
    #[error("empty spec string")]
    Empty,
    /// The schedule does not have five fields.
    #[error("expected exactly 5 fields, found {found}: [{fields}]")]
    Count {
        /// The number of fields.
        found: usize,
        /// The fields.
        fields: String,
    },
    /// The time zone is not in the database.
    #[error("provided bad location {0}: unknown time zone {0}")]
    Zone(String),
    /// `@` followed by an unknown word.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// `@every` followed by an invalid duration.
    #[error("failed to parse duration {text}: {problem}")]
    Every {
        /// The schedule.
        text: String,
        /// The problem with the duration.
        problem: String,
    },
    /// `1-2-3`.
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// `1/2/3`.
    #[error("too many slashes: {0}")]
    Slashes(String),
    /// Neither a number nor a name.
    #[error("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {problem}")]
    Number {
        /// The text.
        text: String,
        /// `invalid syntax` or `value out of range`.
        problem: &'static str,
    },
    /// A negative number.
    #[error("negative number ({number}) not allowed: {text}")]
    Negative {
        /// The number.
        number: i64,
        /// The text.
        text: String,
    },
    /// A range that starts below the minimum.
    #[error("beginning of range ({start}) below minimum ({least}): {text}")]
    Below {
        /// The start of the range.
        start: u64,
        /// The minimum of the field.
        least: u64,
        /// The range.
        text: String,
    },
    /// A range that ends above the maximum.
    #[error("end of range ({end}) above maximum ({greatest}): {text}")]
    Above {
        /// The end of the range.
        end: u64,
        /// The maximum of the field.
        greatest: u64,
        /// The range.
        text: String,
    },
    /// A range that ends before it starts.
    #[error("beginning of range ({start}) beyond end of range ({end}): {text}")]
    Backwards {
        /// The start of the range.
        start: u64,
        /// The end of the range.
        end: u64,
        /// The range.
        text: String,
    },
    /// A range with a step of zero.
    #[error("step of range should be a positive number: {0}")]
    Step(String),
}
