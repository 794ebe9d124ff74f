//! Times as Kubernetes writes them: RFC 3339 in whole seconds, or with six
//! decimals (`MicroTime`), always in UTC.

use jiff::{Timestamp, Unit};

/// `Time`: `2026-01-02T03:04:05Z`.
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

/// `MicroTime`: `2026-01-02T03:04:05.678000Z`.
#[must_use]
pub fn micros(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// Reads either form; `None` when it is no RFC 3339 time.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
