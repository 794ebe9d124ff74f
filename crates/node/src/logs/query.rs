//! Which part of a log is read.

use jiff::Timestamp;

/// Which log, and how much of it.
#[derive(Debug, Clone, Default)]
pub struct LogQuery {
    /// The pod's namespace, for messages.
    pub namespace: String,
    /// The pod's name, for messages.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// The container; may be empty when the pod has only one.
    pub container: String,
    /// Go on until the container ends.
    pub follow: bool,
    /// The run before the present one.
    pub previous: bool,
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// Only records from then on.
    pub since: Option<Timestamp>,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// End after so many bytes.
    pub limit_bytes: Option<u64>,
}
