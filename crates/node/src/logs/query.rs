//! Selects a part of a log.

use jiff::Timestamp;

/// Selects a log and a part of it.
#[derive(Debug, Clone, Default)]
pub struct LogQuery {
    /// The pod's namespace, for messages.
    pub namespace: String,
    /// The pod's name, for messages.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// The container; may be empty if the pod has only one.
    pub container: String,
    /// Continue until the container ends.
    pub follow: bool,
    /// The previous run.
    pub previous: bool,
    /// Limits the log to the last lines.
    pub tail_lines: Option<u64>,
    /// Limits the log to records from this time on.
    pub since: Option<Timestamp>,
    /// Prefix each line with its time.
    pub timestamps: bool,
    /// Ends the log after this many bytes.
    pub limit_bytes: Option<u64>,
}
