//! Converts the Jobs of the roles to the workload: Jobs, one JobSet, or CronJobs.

use longshore_client::{
    Kind as _, KindRef,
    k8s_openapi::{
        api::batch::v1::{CronJob, CronJobSpec, Job, JobSpec, JobTemplateSpec},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
};
use longshore_diagnosis::names::{self, RunName};

use super::{Plan, PlannedRole};
use crate::{
    config::{Schedule, Workload},
    jobset::{FailurePolicy, JobSet, JobSetSpec, Network, ReplicatedJob, SuccessPolicy},
};

impl Workload {
    /// The kind of the created objects.
    pub(crate) fn kind(&self) -> KindRef {
        match self {
            Self::Jobs => Job::info(),
            Self::Scheduled(_) => CronJob::info(),
            Self::JobSet => JobSet::info(),
        }
    }

    /// The name of the Job of a role, as far as known.
    pub(super) fn job(&self, run: &RunName, role: &str) -> String {
        let name = run.job(role);
        match self {
            Self::Jobs => name,
            // A JobSet numbers the replicas of its Jobs; each has one replica here.
            Self::JobSet => format!("{name}-0"),
            Self::Scheduled(_) => format!("{name}-{}", names::EXECUTION),
        }
    }
}

/// The CronJob that creates a role's Jobs.
pub(super) fn cron_job(schedule: &Schedule, job: &Job) -> CronJob {
    CronJob {
        metadata: job.metadata.clone(),
        spec: CronJobSpec {
            schedule: schedule.cron.clone(),
            time_zone: schedule.time_zone.clone(),
            concurrency_policy: Some(schedule.concurrency_policy.clone()),
            job_template: template(job, job.spec.clone()),
            ..CronJobSpec::default()
        },
        ..CronJob::default()
    }
}

/// A JobSet for all roles. It fails with the first failed Job, and succeeds with the last Job,
/// except Jobs of service roles.
pub(super) fn job_set(plan: &Plan) -> Option<JobSet> {
    let first = &plan.roles.first()?.job;
    let roles = plan.roles.iter().map(|role| &role.role);
    let ends = roles.filter(|role| !role.service);
    let mut metadata = first.metadata.clone();
    metadata.name = Some(plan.run.to_string());
    if let Some(labels) = &mut metadata.labels {
        labels.remove(names::ROLE);
    }
    let spec = JobSetSpec {
        network: Some(Network {
            enable_dns_hostnames: true,
            subdomain: plan.run.to_string(),
            // Peers look for each other before they are ready.
            publish_not_ready_addresses: true,
        }),
        success_policy: Some(SuccessPolicy {
            operator: "All".to_owned(),
            target_replicated_jobs: ends.map(|role| role.name.clone()).collect(),
        }),
        failure_policy: Some(FailurePolicy::new(plan.set_restarts)),
        replicated_jobs: plan.roles.iter().map(replicated_job).collect(),
        // If there is a queue, it applies to the JobSet.
        suspend: plan.queue.is_some().then_some(true),
        ttl_seconds_after_finished: first
            .spec
            .as_ref()
            .and_then(|spec| spec.ttl_seconds_after_finished),
    };
    Some(JobSet { metadata, spec })
}

fn replicated_job(role: &PlannedRole) -> ReplicatedJob {
    let spec = role.job.spec.clone().map(|spec| JobSpec {
        // The JobSet suspends the Jobs that it owns, and has the TTL itself.
        suspend: None,
        ttl_seconds_after_finished: None,
        ..spec
    });
    ReplicatedJob {
        name: role.role.name.clone(),
        replicas: 1,
        // Kueue ignores the queue label of Jobs whose JobSet has one. The label only shows that the
        // run waits.
        template: template(&role.job, spec),
    }
}

/// The template of a Job, without its name.
fn template(job: &Job, spec: Option<JobSpec>) -> JobTemplateSpec {
    JobTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: job.metadata.labels.clone(),
            annotations: job.metadata.annotations.clone(),
            ..ObjectMeta::default()
        }),
        spec,
    }
}
