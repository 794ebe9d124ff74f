//! The Job of a role.

use longshore_client::k8s_openapi::{
    api::{
        batch::v1::{Job, JobSpec},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use longshore_diagnosis::names;

use super::{
    PlanError, Planner, caller, error::int32, pod_template::pod_spec_of, restricted, template,
};
use crate::config::{RoleSpec, Workload};

impl Planner<'_> {
    /// The Job of a role, with its template merged.
    pub(super) fn job(&self, role: &RoleSpec) -> Result<Job, PlanError> {
        let mut job = template::merge(role, self.generated_job(role)?)?;
        self.let_command_decide(&mut job);
        if self.spec.restricted {
            restricted::complete(pod_spec_of(&mut job));
        }
        if let Some(recorded) = &self.spec.caller {
            caller::record(recorded, role, &mut job)?;
        }
        Ok(job)
    }

    pub(super) fn is_scheduled(&self) -> bool {
        matches!(self.spec.workload, Workload::Scheduled(_))
    }

    /// The Job of a role, without the settings that the user wrote in Kubernetes' notation.
    fn generated_job(&self, role: &RoleSpec) -> Result<Job, PlanError> {
        let labels = self.labels(Some(&role.name));
        let annotations = self.annotations(role)?;
        let mut own = labels.clone();
        if let Some(queue) = &self.spec.queue {
            own.insert(names::QUEUE.to_owned(), queue.clone());
        }
        let tags = self.spec.tags.iter();
        own.extend(tags.map(|(key, value)| (format!("{}{key}", names::TAG_PREFIX), value.clone())));
        let mut noted = annotations.clone();
        noted.extend(self.job_annotations()?);
        let count = int32("count of a role", role.count.into())?;
        let sweep = self.spec.sweep.as_ref();
        let parallelism = match sweep {
            Some(sweep) => int32("parallel", sweep.parallel.into())?,
            None => count,
        };
        let max_failed = sweep.and_then(|sweep| sweep.max_failed);
        let max_failed = max_failed.map(|most| int32("max_failed", most.into()));
        let retries = int32("retries", self.spec.retries.into())?;
        let whole_run = self.spec.restarts.whole_run.is_some();
        let (backoff_limit, backoff_limit_per_index, max_failed_indexes) = match sweep {
            // A failed combination does not end the others.
            Some(_) => (None, Some(retries), max_failed.transpose()?),
            None if retries == 0 || self.is_restarted_by_set() => (Some(0), None, None),
            // The limit per index makes Kubernetes count failures in the annotations of the pods.
            None if whole_run => (Some(retries), Some(retries), Some(0)),
            None => (None, Some(retries), Some(0)),
        };
        let timeout = self.spec.timeout.map(|timeout| timeout.as_secs());
        let timeout = timeout.map(|timeout| int32("timeout", timeout));
        let ttl = self.spec.ttl.map(|ttl| int32("ttl", ttl.as_secs()));
        let template = PodTemplateSpec {
            metadata: Some(ObjectMeta {
                labels: Some(labels),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            }),
            spec: Some(self.pod_spec(role)?),
        };
        Ok(Job {
            metadata: ObjectMeta {
                name: Some(self.run.job(&role.name)),
                namespace: Some(self.namespace.to_owned()),
                labels: Some(own),
                annotations: Some(noted),
                ..ObjectMeta::default()
            },
            spec: Some(JobSpec {
                completions: Some(count),
                parallelism: Some(parallelism),
                completion_mode: Some("Indexed".to_owned()),
                backoff_limit,
                backoff_limit_per_index,
                max_failed_indexes,
                pod_failure_policy: self.pod_failure_policy(),
                active_deadline_seconds: timeout.transpose()?.map(i64::from),
                ttl_seconds_after_finished: ttl.transpose()?,
                // Kueue resumes it when it admits the run.
                suspend: self.spec.queue.is_some().then_some(true),
                template,
                ..JobSpec::default()
            }),
            ..Job::default()
        })
    }
}
