//! Why a run was not launched.

use crate::{
    bundle::BundleError,
    outputs::OutputsError,
    plan::PlanError,
    preflight::{self, Finding},
    store::StoreError,
    submit::SubmitError,
};

/// Why a run was not launched. No object of the run is left in the cluster, unless the cluster
/// stopped answering during the submission.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The folder cannot be packed.
    #[error(transparent)]
    Pack(#[from] BundleError),
    /// The store cannot hold the code, or there is none and the code does not fit a Secret.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cluster keeps no outputs.
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    /// The plan cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The cluster does not answer.
    #[error(transparent)]
    Cluster(#[from] longshore_client::Error),
    /// Preflight found problems. Nothing was uploaded or created.
    #[error("the run cannot start: {}", preflight::listed(.0))]
    Refused(Vec<Finding>),
    /// The cluster refused an object.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}
