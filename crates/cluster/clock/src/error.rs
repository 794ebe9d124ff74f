//! Why a clock is not advanced, and why a cluster has not settled.

use std::time::Duration;

use jiff::Timestamp;

/// Why a clock is not advanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClockError {
    /// It is that of the system.
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
    /// Kubernetes' times end with the year 9999.
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

/// Why a wait for the components of a cluster ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
    /// The clock is that of the system.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A component still had work to do.
    #[error(
        "the cluster has not settled within {timeout:?}: {pending}; set a longer timeout, or wait for the state of an object"
    )]
    Timeout {
        /// How long the caller waited.
        timeout: Duration,
        /// What the components had to do.
        pending: String,
    },
}
