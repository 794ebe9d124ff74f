//! Limits of a container's log.

/// Limits of a container's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// The maximum size of a log file in bytes before a new one is started, like the kubelet's
    /// `containerLogMaxSize`.
    pub max_size: u64,
    /// The maximum number of files of a run, including the current one, like the kubelet's
    /// `containerLogMaxFiles`. At least two. Up to ten times as many files are kept for 30 s after
    /// they were completed, and while a reader that is slower than the container still needs them.
    /// After that, the container waits for the reader, which has 30 s for each file.
    pub max_files: u32,
}

impl Default for LogLimits {
    /// The kubelet's defaults: 10 MiB and 5 files.
    fn default() -> Self {
        Self {
            max_size: 10 << 20,
            max_files: 5,
        }
    }
}
