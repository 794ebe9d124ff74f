//! How much of a container's log is kept.

/// How much of a container's log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// A file that would grow over so many bytes is left, and another begun: the
    /// kubelet's `containerLogMaxSize`.
    pub max_size: u64,
    /// So many files are kept of a run, the one that grows among them: the
    /// kubelet's `containerLogMaxFiles`. At least two. Up to ten times as many
    /// are kept for the 30 s after they were completed, and while a reader that
    /// is slower than the container still needs them. Beyond that the container
    /// waits for the reader, which has 30 s for each file.
    pub max_files: u32,
}

impl Default for LogLimits {
    /// The kubelet's own: 10 MiB and 5 files.
    fn default() -> Self {
        Self {
            max_size: 10 << 20,
            max_files: 5,
        }
    }
}
