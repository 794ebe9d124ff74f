//! Why a clock is not advanced.

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
