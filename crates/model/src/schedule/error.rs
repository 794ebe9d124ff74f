//! Why a schedule cannot be read, in the words that Kubernetes has for it.

use thiserror::Error;

/// Why a schedule cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Nothing is written.
    #[error("empty spec string")]
    Empty,
    /// Not five fields.
    #[error("expected exactly 5 fields, found {found}: [{fields}]")]
    Count {
        /// How many there are.
        found: usize,
        /// The fields.
        fields: String,
    },
    /// A time zone that is in no database.
    #[error("provided bad location {0}: unknown time zone {0}")]
    Zone(String),
    /// `@` and a word that means nothing.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// `@every` and what is no duration.
    #[error("failed to parse duration {text}: {problem}")]
    Every {
        /// The schedule.
        text: String,
        /// What is wrong with the duration.
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
        /// What is written.
        text: String,
        /// `invalid syntax` or `value out of range`.
        problem: &'static str,
    },
    /// A number below zero.
    #[error("negative number ({number}) not allowed: {text}")]
    Negative {
        /// The number.
        number: i64,
        /// What is written.
        text: String,
    },
    /// A range that begins too early.
    #[error("beginning of range ({start}) below minimum ({least}): {text}")]
    Below {
        /// Where it begins.
        start: u64,
        /// The least number of the field.
        least: u64,
        /// The range.
        text: String,
    },
    /// A range that ends too late.
    #[error("end of range ({end}) above maximum ({greatest}): {text}")]
    Above {
        /// Where it ends.
        end: u64,
        /// The greatest number of the field.
        greatest: u64,
        /// The range.
        text: String,
    },
    /// A range that ends before it begins.
    #[error("beginning of range ({start}) beyond end of range ({end}): {text}")]
    Backwards {
        /// Where it begins.
        start: u64,
        /// Where it ends.
        end: u64,
        /// The range.
        text: String,
    },
    /// A range in steps of nothing.
    #[error("step of range should be a positive number: {0}")]
    Step(String),
}
