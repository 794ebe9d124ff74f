//! Validation of PriorityLevelConfigurations.

use longshore_model::CauseList;

use super::{
    super::field_value::{Causes, FieldValue},
    EXEMPT, status,
};
use crate::json::{self, Object};

const MAX_QUEUES: i64 = 10_000_000;
/// The bits of the hash that selects the queues of a flow.
const HASH_BITS: f64 = 60.0;

pub(crate) fn level(object: &Object, causes: &mut CauseList) {
    let (spec, found) = (FieldValue::field(object, "spec"), &mut Causes(causes));
    let name = json::text(object, "metadata.name");
    let (kind, exempt, limited) = (spec.get("type"), spec.get("exempt"), spec.get("limited"));
    if (name == EXEMPT) != (kind.text() == "Exempt") {
        found.invalid(&kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                found.forbidden(&limited, "");
                let response = limited.get("limitResponse").get("type");
                if response.text().is_empty() {
                    found.required(&response, "");
                }
            }
            shares(&exempt, found);
        }
        "Limited" => {
            if exempt.is_set() {
                found.forbidden(&exempt, "");
            }
            if limited.is_set() {
                limits(&limited, found);
            } else {
                found.required(&limited, "");
            }
        }
        "" => found.required(&kind, ""),
        _ => found.not_supported(&kind, &["Exempt", "Limited"]),
    }
    status(object, causes);
}

fn shares(at: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let shares = at.get("nominalConcurrencyShares");
    if shares.number().is_some_and(|number| number < 0) {
        causes.invalid(&shares, "must be a non-negative integer");
    }
    let lendable = at.get("lendablePercent");
    if lendable
        .number()
        .is_some_and(|number| !(0..=100).contains(&number))
    {
        causes.invalid(&lendable, "must be between 0 and 100, inclusive");
    }
}

fn limits(limited: &FieldValue<'_>, causes: &mut Causes<'_>) {
    shares(limited, causes);
    let borrowing = limited.get("borrowingLimitPercent");
    if borrowing.number().is_some_and(|number| number < 0) {
        causes.invalid(&borrowing, "if specified, must be a non-negative integer");
    }
    let response = limited.get("limitResponse");
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match kind.text() {
        "Reject" if queuing.is_set() => causes.forbidden(&queuing, ""),
        "Reject" => {}
        "Queue" if queuing.is_set() => queues(&queuing, causes),
        "Queue" => causes.required(&queuing, ""),
        "" => causes.required(&kind, ""),
        _ => causes.not_supported(&kind, &["Queue", "Reject"]),
    }
}

fn queues(queuing: &FieldValue<'_>, causes: &mut Causes<'_>) {
    let number = |name: &str| {
        let at = queuing.get(name);
        let number = at.number().unwrap_or_default();
        (at, number)
    };
    let (at, limit) = number("queueLengthLimit");
    if limit <= 0 {
        causes.invalid(&at, "must be positive");
    }
    let (at, queues) = number("queues");
    if queues <= 0 {
        causes.invalid(&at, "must be positive");
    } else if queues > MAX_QUEUES {
        causes.invalid(&at, &format!("must not be greater than {MAX_QUEUES}"));
    }
    let (at, hand) = number("handSize");
    if hand <= 0 {
        causes.invalid(&at, "must be positive");
    } else if hand > queues {
        causes.invalid(
            &at,
            &format!("should not be greater than queues ({queues})"),
        );
    } else {
        #[allow(
            clippy::cast_precision_loss,
            reason = "both are at most 10 million or rejected"
        )]
        let bits = ((queues as f64).log2() * hand as f64).ceil();
        if bits > HASH_BITS {
            causes.invalid(
                &at,
                &format!(
                    "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
                ),
            );
        }
    }
}
