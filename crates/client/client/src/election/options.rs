//! Identity and times of a candidate.

use std::time::Duration;

use crate::error::{Error, Result};

/// The identity and the times of a candidate. The defaults are the same as in Kubernetes' own
/// components. All candidates of a Lease should have the same times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionOptions {
    /// The name of this process, unique among the candidates: for example, its pod's name.
    pub identity: String,
    /// The time that other candidates wait after the last renewal that they have seen: 15 seconds.
    /// Kubernetes keeps whole seconds.
    pub lease_duration: Duration,
    /// The time after which the leader gives up if it cannot renew the Lease: 10 seconds.
    pub renew_deadline: Duration,
    /// The time between two attempts: 2 seconds.
    pub retry_interval: Duration,
}

impl ElectionOptions {
    /// Options with the default times.
    #[must_use]
    pub fn new(identity: impl Into<String>) -> Self {
        Self {
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_interval: Duration::from_secs(2),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let problem = if self.identity.is_empty() {
            "the identity is empty: give each candidate a name of its own"
        } else if self.lease_duration.subsec_nanos() != 0 || self.lease_duration.is_zero() {
            "lease_duration must be whole seconds, at least 1"
        } else if i32::try_from(self.lease_duration.as_secs()).is_err() {
            "lease_duration is too long"
        } else if self.lease_duration <= self.renew_deadline {
            "lease_duration must be longer than renew_deadline: two processes could lead"
        } else if self.renew_deadline <= self.retry_interval {
            "renew_deadline must be longer than retry_interval"
        } else if self.retry_interval.is_zero() {
            "retry_interval must not be zero"
        } else {
            return Ok(());
        };
        Err(Error::Invalid(format!("leader election: {problem}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_contradict_each_other_are_rejected() {
        let usual = ElectionOptions::new("a");
        assert!(usual.check().is_ok());
        let seconds = Duration::from_secs;
        for (wrong, part) in [
            (ElectionOptions::new(""), "identity"),
            (
                ElectionOptions {
                    lease_duration: seconds(10),
                    ..usual.clone()
                },
                "longer than renew_deadline",
            ),
            (
                ElectionOptions {
                    retry_interval: seconds(10),
                    ..usual.clone()
                },
                "longer than retry_interval",
            ),
            (
                ElectionOptions {
                    retry_interval: seconds(0),
                    ..usual.clone()
                },
                "zero",
            ),
            (
                ElectionOptions {
                    lease_duration: Duration::MAX,
                    ..usual.clone()
                },
                "whole seconds",
            ),
            (
                ElectionOptions {
                    lease_duration: seconds(1 << 40),
                    ..usual
                },
                "too long",
            ),
        ] {
            let error = wrong.check().expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
