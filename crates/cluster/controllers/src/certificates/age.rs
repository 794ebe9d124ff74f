//! Decides when old requests are deleted.

use jiff::{SignedDuration, Timestamp};

use super::facts::Request;

/// The lifetime of requests without a decision, and of approved requests without a certificate.
const PENDING: SignedDuration = SignedDuration::from_hours(24);
/// The lifetime of other requests.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);

/// Returns the time at which a request is deleted, or `None` if a time is missing.
pub(super) fn end(request: &Request) -> Option<Timestamp> {
    if request.conditions.is_empty() {
        return add(request.created?, PENDING);
    }
    let approved = match request.is_issued {
        true => DECIDED,
        false => PENDING,
    };
    let ends = [
        ("Denied", DECIDED),
        ("Failed", DECIDED),
        ("Approved", approved),
    ];
    let ends = ends.into_iter().filter_map(|(kind, age)| {
        let updated = request.condition(kind)?.updated?;
        add(updated, age)
    });
    ends.min()
}

fn add(at: Timestamp, age: SignedDuration) -> Option<Timestamp> {
    at.checked_add(age).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::facts::Condition;

    #[test]
    fn decided_requests_end_earlier() {
        let of = |is_issued: bool, conditions: &[(&str, i64)]| {
            let conditions = conditions.iter().map(|&(kind, at)| Condition {
                kind: kind.into(),
                updated: Timestamp::from_second(at).ok(),
            });
            let request = Request {
                is_issued,
                conditions: conditions.collect(),
                created: Some(Timestamp::UNIX_EPOCH),
                ..Request::default()
            };
            end(&request).map(Timestamp::as_second)
        };
        let (hour, day) = (3600, 24 * 3600);
        assert_eq!(of(false, &[]), Some(day));
        assert_eq!(of(false, &[("Approved", 1)]), Some(day + 1));
        assert_eq!(of(true, &[("Approved", 1)]), Some(hour + 1));
        assert_eq!(of(false, &[("Denied", 2)]), Some(hour + 2));
        assert_eq!(of(false, &[("Approved", 1), ("Failed", 3)]), Some(hour + 3));
        assert_eq!(of(false, &[("Other", 1)]), None);
    }
}
