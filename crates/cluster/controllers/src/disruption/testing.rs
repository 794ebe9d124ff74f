//! Budgets and pods for the unit tests.
#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use longshore_client::LabelSelector;

use super::{
    budget::{Amount, Budget},
    pod::PodFacts,
    status::Status,
};
use crate::key::Key;

/// The current time of the tests.
pub(super) fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

/// A budget that requires one available pod.
pub(super) fn budget() -> Budget {
    Budget {
        key: Key::new("a", "web"),
        uid: "u".into(),
        generation: 1,
        selector: Some(LabelSelector::everything()),
        selector_text: String::new(),
        min_available: Some(Amount::Number(1)),
        max_unavailable: None,
        status: Status::default(),
    }
}

/// A ready pod.
pub(super) fn pod(name: &str) -> PodFacts {
    PodFacts {
        key: Key::new("a", name),
        uid: name.into(),
        ready: true,
        deleting: false,
        owner: None,
        disrupted_since: None,
    }
}
