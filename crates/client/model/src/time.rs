//! Times in the formats of Kubernetes: RFC 3339 in UTC, with whole seconds
//! (`Time`) or six decimals (`MicroTime`).

use jiff::{Timestamp, Unit};

/// Formats a `Time`: `2026-01-02T03:04:05Z`.
///
/// ```
/// let t = jiff::Timestamp::from_millisecond(1_767_323_045_678).unwrap();
/// assert_eq!(longshore_model::time::seconds(t), "2026-01-02T03:04:05Z");
/// assert_eq!(longshore_model::time::micros(t), "2026-01-02T03:04:05.678000Z");
/// ```
#[must_use]
pub fn seconds(at: Timestamp) -> String {
    let floor = jiff::TimestampRound::new()
        .smallest(Unit::Second)
        .mode(jiff::RoundMode::Floor);
    format!("{}", at.round(floor).unwrap_or(at))
}

/// Formats a `MicroTime`: `2026-01-02T03:04:05.678000Z`.
#[must_use]
pub fn micros(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// Parses both formats; `None` if the text is not an RFC 3339 time.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
