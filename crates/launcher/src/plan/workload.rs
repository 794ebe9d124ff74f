//! Converts the Jobs of the roles to the workload: Jobs, one JobSet, or CronJobs.

use std::borrow::Cow;

use longshore_client::{
    Kind as _, KindRef,
    kinds::{CronJob, Job},
};
use serde_json::{Value, json};

use crate::{
    config::{Schedule, Workload},
    jobset::jobset,
    names::{self, RunName},
    run::RunRole,
};

impl Workload {
    /// The kind of the created objects.
    pub(crate) fn kind(&self) -> KindRef {
        match self {
            Self::Jobs => Job::info(),
            Self::Scheduled(_) => CronJob::info(),
            Self::JobSet => jobset().into(),
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

    /// The objects to create.
    pub(super) fn objects<'a>(&self, run: &RunName, jobs: &'a [Value]) -> Cow<'a, [Value]> {
        match self {
            Self::Jobs => Cow::Borrowed(jobs),
            Self::Scheduled(schedule) => jobs.iter().map(|job| cron_job(schedule, job)).collect(),
            Self::JobSet => jobs
                .first()
                .map(|first| set(run, first, jobs))
                .into_iter()
                .collect(),
        }
    }
}

fn cron_job(schedule: &Schedule, job: &Value) -> Value {
    let mut template = json!({
        "metadata": {
            "labels": job["metadata"]["labels"],
            "annotations": job["metadata"]["annotations"],
        },
        "spec": job["spec"],
    });
    let mut spec = json!({
        "schedule": schedule.cron,
        "concurrencyPolicy": schedule.concurrency_policy,
        "jobTemplate": template.take(),
    });
    if let Some(zone) = &schedule.time_zone {
        spec["timeZone"] = json!(zone);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": job["metadata"],
        "spec": spec,
    })
}

/// One JobSet for all roles. It fails with the first failed Job, and succeeds with the last
/// Job other than those of service roles.
fn set(run: &RunName, first: &Value, jobs: &[Value]) -> Value {
    let role = |job: &Value| job["metadata"]["labels"][names::ROLE].clone();
    let roles = first["metadata"]["annotations"][names::ROLES].as_str();
    let roles: Vec<RunRole> = roles
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let ends = roles.iter().filter(|role| !role.service);
    let ends: Vec<&str> = ends.map(|role| role.name.as_str()).collect();
    let mut suspended = false;
    let replicated = jobs.iter().map(|job| {
        let mut spec = job["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            // The JobSet has the queue, if there is one.
            suspended |= spec.remove("suspend").is_some();
            // The JobSet owns the Jobs, and has the TTL itself.
            spec.remove("ttlSecondsAfterFinished");
        }
        // Kueue ignores the queue label of Jobs whose JobSet has one. The label shows which run
        // waits.
        let (labels, annotations) = (&job["metadata"]["labels"], &job["metadata"]["annotations"]);
        json!({
            "name": role(job),
            "replicas": 1,
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": spec,
            },
        })
    });
    let replicated: Vec<Value> = replicated.collect();
    let mut meta = first["metadata"].clone();
    meta["name"] = json!(run.as_str());
    if let Some(labels) = meta["labels"].as_object_mut() {
        labels.remove(names::ROLE);
    }
    let mut spec = json!({
        "network": {
            "enableDNSHostnames": true,
            "subdomain": run.as_str(),
            // Peers look for each other before they are ready.
            "publishNotReadyAddresses": true,
        },
        "successPolicy": {"operator": "All", "targetReplicatedJobs": ends},
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": replicated,
    });
    if suspended {
        spec["suspend"] = json!(true);
    }
    if let Some(ttl) = first["spec"].get("ttlSecondsAfterFinished") {
        spec["ttlSecondsAfterFinished"] = ttl.clone();
    }
    json!({
        "apiVersion": jobset().api_version(),
        "kind": names::JOBSET,
        "metadata": meta,
        "spec": spec,
    })
}
