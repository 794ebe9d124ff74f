//! Errors of launching a run.

use crate::{
    bundle::BundleError,
    data::DataError,
    outputs::OutputsError,
    plan::PlanError,
    preflight::{self, Finding},
    store::StoreError,
    submit::SubmitError,
};

/// An error of launching a run. No object of the run is left in the cluster, unless the cluster
/// stopped answering during the submission.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The folder cannot be packed.
    #[error(transparent)]
    Pack(#[from] BundleError),
    /// The store cannot hold the code, or the code does not fit into a Secret and no store is
    /// configured.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cluster does not keep outputs.
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    /// The data cannot be provided to the tasks.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The sha256 of the data differs from the specified one.
    #[error(
        "the sha256 of the data {name:?} is {found}, not {pin}: it has changed; restore it, or set `pin` to its sha256"
    )]
    Pinned {
        /// The name of the data.
        name: String,
        /// The sha256 of the data.
        found: String,
        /// The specified sha256.
        pin: String,
    },
    /// The nodes have no access to the data.
    #[error(
        "the pods of this cluster need a store for the data {name:?}: set `store` (s3://…, gs://… or az://…, or file:///… for a folder that all nodes share)"
    )]
    NoDataStore {
        /// The name of the data.
        name: String,
    },
    /// The signed URLs of data expire before the runs of a schedule.
    #[error(
        "pods fetch the data {name:?} from signed URLs that expire within days, and a schedule runs for longer: use a folder that the nodes share as the store (file://), or a volume"
    )]
    ScheduledData {
        /// The name of the data.
        name: String,
    },
    /// Data or a volume cannot be in the folder of the code.
    #[error("tasks cannot have data or a volume at {path} in the folder of the code: {problem}")]
    InCode {
        /// The path in the folder of the code.
        path: String,
        /// The reason, and the remedy.
        problem: &'static str,
    },
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
