//! Decides which requests are signed, and the validity of certificates.

use std::ops::Range;

use jiff::{SignedDuration, Timestamp};

use super::{facts::Request, rules};

/// The maximum validity, which is also the default.
const LONGEST: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The minimum validity.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);
/// The time by which the start of the validity is set back, because the clocks of clients differ.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);
/// The minimum validity from which the backdated time is part of the validity.
const LONG: SignedDuration = SignedDuration::from_hours(8);

/// Returns true if a request is to be signed.
pub(super) fn is_due(request: &Request) -> bool {
    rules::is_own(&request.signer)
        && !request.is_issued
        && request.has("Approved")
        && !request.has("Denied")
        && !request.has("Failed")
}

/// Returns the validity of a certificate that is signed at `now`.
pub(super) fn validity(expiration_seconds: Option<i32>, now: Timestamp) -> Range<Timestamp> {
    let wanted = expiration_seconds.map(|seconds| SignedDuration::from_secs(seconds.into()));
    let duration = wanted.unwrap_or(LONGEST).clamp(SHORTEST, LONGEST);
    let after = match duration < LONG {
        true => duration,
        false => duration.saturating_sub(BACKDATE),
    };
    let add = |by: SignedDuration| now.saturating_add(by).unwrap_or(now);
    now.saturating_sub(BACKDATE).unwrap_or(now)..add(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::facts::Condition;

    #[test]
    fn only_approved_requests_of_own_signers_are_signed() {
        let of = |signer: &str, conditions: &[&str]| {
            let conditions = conditions.iter().map(|&kind| Condition {
                kind: kind.into(),
                updated: None,
            });
            is_due(&Request {
                signer: signer.into(),
                conditions: conditions.collect(),
                ..Request::default()
            })
        };
        assert!(of(rules::CLIENT, &["Approved"]));
        assert!(!of(rules::CLIENT, &[]));
        assert!(!of(rules::CLIENT, &["Approved", "Denied"]));
        assert!(!of(rules::CLIENT, &["Approved", "Failed"]));
        assert!(!of("kubernetes.io/legacy-unknown", &["Approved"]));
        assert!(!of("example.com/own", &["Approved"]));
    }

    #[test]
    fn validities() {
        let now = Timestamp::UNIX_EPOCH;
        let of = |seconds: Option<i32>| {
            let valid = validity(seconds, now);
            (valid.start.as_second(), valid.end.as_second())
        };
        assert_eq!(of(Some(3600)), (-300, 3600));
        assert_eq!(of(Some(8 * 3600)), (-300, 8 * 3600 - 300));
        assert_eq!(of(Some(1)), (-300, 600));
        let year = 365 * 24 * 3600;
        assert_eq!(of(None), (-300, year - 300));
        assert_eq!(of(Some(i32::MAX)), (-300, year - 300));
    }
}
