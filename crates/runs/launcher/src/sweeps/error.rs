//! Errors of reading a sweep, or of running it again.

/// An error of reading a sweep, or of running it again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The cluster returned an error or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// The run is not a sweep.
    #[error("the run {run} is not a sweep: `longshore run --sweep NAME=VALUES` starts one")]
    NotASweep {
        /// The run.
        run: String,
    },
    /// The first run of a retry was removed.
    #[error("the run {run}, whose combinations were run again, no longer exists")]
    Removed {
        /// The first run.
        run: String,
    },
    /// The Secret with the combinations is missing or invalid.
    #[error(
        "cannot read the combinations of {run} from its Secret: {problem}; it may have been removed"
    )]
    Secret {
        /// The run.
        run: String,
        /// The problem.
        problem: String,
    },
    /// No combination has failed.
    #[error("the sweep {run} has no failed combinations ({states})")]
    NothingToRetry {
        /// The first run.
        run: String,
        /// The numbers of combinations in each state.
        states: String,
    },
    /// The Secret with the code of the run was removed.
    #[error("the code of {run} no longer exists; submit the sweep again")]
    CodeRemoved {
        /// The first run.
        run: String,
    },
    /// The run of the failed combinations cannot be planned.
    #[error("cannot plan a run of the failed combinations: {problem}")]
    Plan {
        /// The problem.
        problem: String,
    },
}
