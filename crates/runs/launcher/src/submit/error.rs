//! Errors of submitting a run.

/// An error of submitting a run. None of its objects is left in the cluster, unless the cluster
/// stopped answering during the submission.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The cluster refused an object, or did not answer.
    #[error("cannot create {what}: {source}")]
    Create {
        /// Kind and name.
        what: String,
        /// The cluster's error.
        source: longshore_client::Error,
    },
    /// The cluster returned an error or did not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// A bundle with the same name has other content.
    #[error(
        "the Secret {name:?} contains another bundle than its annotation says; delete it and submit again"
    )]
    OtherBundle {
        /// The Secret's name.
        name: String,
    },
    /// No controller creates the Jobs of the JobSet.
    #[error(
        "the JobSet {name:?} has no Jobs after {seconds} s: check that its controller runs (`longshore get deployments --all-namespaces` shows it as jobset-controller-manager), or remove `jobset`"
    )]
    NoJobs {
        /// The JobSet's name.
        name: String,
        /// The time that the submission waited for the Jobs, in seconds.
        seconds: u64,
    },
}

impl SubmitError {
    /// The cluster's error, if it is the cause.
    #[must_use]
    pub fn cluster_error(&self) -> Option<&longshore_client::Error> {
        match self {
            Self::Create { source, .. } | Self::Cluster(source) => Some(source),
            _ => None,
        }
    }
}
