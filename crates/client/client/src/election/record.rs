//! The spec of a Lease: its holder, and the changes that a candidate writes.

use jiff::Timestamp;
use longshore_model::time;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{ElectionOptions, RELEASED};
use crate::{item::Item, kinds::Lease};

/// A version of the Lease, and the time at which this process first saw it. The lease expires a
/// duration after this time, because the times in the Lease are from another clock.
#[derive(Debug)]
pub(super) struct Observed {
    version: String,
    holder: String,
    duration: std::time::Duration,
    at: Instant,
}

impl Observed {
    /// The Lease as read `now`. `before` is the previous observation.
    pub(super) fn new(item: &Item<Lease>, before: Option<Self>, now: Instant) -> Self {
        let version = item.version();
        if let Some(before) = before.filter(|before| before.version == version) {
            return before;
        }
        let holder = item.field(&["spec", "holderIdentity"]);
        let duration = item.field::<u32>(&["spec", "leaseDurationSeconds"]);
        Self {
            version: version.to_owned(),
            holder: holder.ok().flatten().unwrap_or_default(),
            duration: std::time::Duration::from_secs(duration.ok().flatten().unwrap_or(0).into()),
            at: now,
        }
    }

    /// Returns true if a candidate may take or renew the Lease.
    pub(super) fn may_be_taken(&self, identity: &str, now: Instant) -> bool {
        !self.is_of_another(identity) || now.duration_since(self.at) >= self.duration
    }

    pub(super) fn is_of_another(&self, identity: &str) -> bool {
        !self.holder.is_empty() && self.holder != identity
    }
}

/// The spec after a candidate has acquired or renewed the Lease. Other fields are not changed.
pub(super) fn acquired(before: Option<&Value>, options: &ElectionOptions, now: Timestamp) -> Value {
    let now = time::micros(now);
    let before = before.filter(|spec| spec.is_object());
    let mut spec = before.cloned().unwrap_or_else(|| json!({}));
    let transitions = spec["leaseTransitions"].as_i64().unwrap_or(0);
    if spec["holderIdentity"] != *options.identity {
        spec["leaseTransitions"] = match before {
            Some(_) => transitions.saturating_add(1).min(i32::MAX.into()).into(),
            None => 0.into(),
        };
        spec["acquireTime"] = now.clone().into();
    }
    spec["holderIdentity"] = options.identity.clone().into();
    spec["leaseDurationSeconds"] = options.lease_duration.as_secs().into();
    spec["renewTime"] = now.into();
    spec
}

/// The spec after the holder has resigned.
pub(super) fn released(before: &Value, now: Timestamp) -> Value {
    let now = time::micros(now);
    json!({
        "holderIdentity": "",
        "leaseDurationSeconds": RELEASED.as_secs(),
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": before["leaseTransitions"].as_i64().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn observed(holder: &str, at: Instant) -> Observed {
        Observed {
            version: "1".into(),
            holder: holder.into(),
            duration: Duration::from_secs(15),
            at,
        }
    }

    #[test]
    fn a_lease_may_be_taken_when_it_is_free_own_or_expired() {
        let begin = Instant::now();
        let later = begin + Duration::from_secs(15);
        assert!(observed("", begin).may_be_taken("me", begin));
        assert!(observed("me", begin).may_be_taken("me", begin));
        assert!(!observed("other", begin).may_be_taken("me", later - Duration::from_millis(1)));
        assert!(observed("other", begin).may_be_taken("me", later));
    }

    #[test]
    fn a_new_holder_counts_as_a_transition_and_a_renewal_does_not() {
        let options = ElectionOptions::new("me");
        let (first, second) = (
            Timestamp::UNIX_EPOCH,
            Timestamp::UNIX_EPOCH + jiff::Span::new().seconds(2),
        );
        let new = acquired(None, &options, first);
        assert_eq!(new["leaseTransitions"], 0);
        let renewed = acquired(Some(&new), &options, second);
        assert_eq!(renewed["acquireTime"], new["acquireTime"]);
        assert_eq!(renewed["renewTime"], "1970-01-01T00:00:02.000000Z");
        let other = acquired(Some(&renewed), &ElectionOptions::new("other"), second);
        assert_eq!(other["leaseTransitions"], 1);
        let free = released(&other, second);
        assert_eq!(
            acquired(Some(&free), &options, second)["leaseTransitions"],
            2
        );
    }

    #[test]
    fn fields_of_others_are_kept() {
        let before = json!({"strategy": "OldestEmulationVersion", "holderIdentity": "me"});
        let after = acquired(
            Some(&before),
            &ElectionOptions::new("me"),
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(after["strategy"], "OldestEmulationVersion");
    }
}
