//! Errors of advancing a clock and of waiting until a cluster has settled.

use std::time::Duration;

use jiff::Timestamp;

/// An error of advancing or setting a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClockError {
    /// The clock is the system's clock.
    #[error(
        "the clock of this cluster is the system's, which cannot be advanced: start the cluster with a manual clock"
    )]
    NotManual,
    /// A clock never goes back.
    #[error("the clock shows {now}, and cannot be set back to {to}")]
    Backward {
        /// The current time.
        now: Timestamp,
        /// The time to set.
        to: Timestamp,
    },
    /// Kubernetes' timestamps end with the year 9999.
    #[error(
        "the clock shows {now}, and cannot be advanced by {by:?}: times end with the year 9999"
    )]
    OutOfRange {
        /// The current time.
        now: Timestamp,
        /// The duration.
        by: std::time::Duration,
    },
}

/// An error of waiting until the components of a cluster have no work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The clock is the system's clock.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A component still had work to do.
    #[error(
        "the cluster has not settled within {timeout:?}: {pending}; set a longer timeout, or wait for the state of an object"
    )]
    Timeout {
        /// The duration of the wait.
        timeout: Duration,
        /// The work that the components had to do.
        pending: String,
    },
}
