//! The fields of a cluster's objects that following, explaining, listing and preflight need, parsed
//! from JSON. The fields of pods and nodes are in [`longshore_model::facts`], because the resolver
//! reads them as well.

mod event;
mod indexes;
mod job;
mod pod;
mod policy;
mod workload;

pub use event::{EventEvidence, Regarding};
pub use indexes::index_set;
pub use job::{
    CronJobEvidence, CronJobSpec, CronJobStatus, JobEvidence, JobSpec, JobStatus, Template,
};
pub use pod::RunPod;
pub use policy::{LimitItem, LimitRangeEvidence, LimitSpec, QuotaEvidence, QuotaStatus};
pub use workload::WorkloadEvidence;
