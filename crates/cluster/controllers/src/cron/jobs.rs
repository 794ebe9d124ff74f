//! Builds the Jobs of a CronJob.

use std::collections::BTreeMap;

use jiff::{Timestamp, tz::TimeZone};
use k8s_openapi::{
    api::{
        batch::v1::{CronJob, Job},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use longshore_client::{Item, kinds};

/// The annotation with the scheduled time of a Job.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// Returns the name of the Job for a scheduled time. It contains the minute, so
/// that no time gets two Jobs, even with several controllers.
pub(crate) fn name(cron: &str, time: Timestamp) -> String {
    format!("{cron}-{}", time.as_second().div_euclid(60))
}

/// Builds the Job for a scheduled time.
pub(crate) fn build(cron: &CronJob, time: Timestamp, zone: &TimeZone) -> Job {
    let cron_name = cron.metadata.name.clone().unwrap_or_default();
    let template = &cron.spec.job_template;
    let meta = template.metadata.clone().unwrap_or_default();
    let mut annotations: BTreeMap<_, _> = meta.annotations.unwrap_or_default();
    annotations.insert(SCHEDULED.to_owned(), local(time, zone));
    let owner = OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "CronJob".to_owned(),
        name: cron_name.clone(),
        uid: cron.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    Job {
        metadata: ObjectMeta {
            name: Some(name(&cron_name, time)),
            namespace: cron.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// Formats a time as RFC 3339 with the zone's offset, or with `Z` for UTC.
fn local(time: Timestamp, zone: &TimeZone) -> String {
    let offset = zone.to_offset(time);
    if offset.is_zero() {
        time.to_string()
    } else {
        time.display_with_offset(offset).to_string()
    }
}

/// Returns the reference to a Job in a CronJob's status.
pub(crate) fn reference(job: &Item<kinds::Job>) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        namespace: job.namespace().map(str::to_owned),
        name: Some(job.name().to_owned()),
        uid: Some(job.uid().to_owned()),
        resource_version: Some(job.meta().resource_version.clone()),
        field_path: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use longshore_model::schedule::time_zone;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_built_from_the_template() {
        let cron: CronJob = serde_json::from_value(json!({
            "metadata": {"name": "nightly", "namespace": "a", "uid": "c1", "labels": {"not": "this"}},
            "spec": {"schedule": "0 3 * * *", "jobTemplate": {
                "metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}, "name": "ignored"},
                "spec": {"backoffLimit": 2, "template": {"spec": {"containers": [{"name": "m"}]}}},
            }},
        }))
        .unwrap();
        let time: Timestamp = "2026-07-01T01:00:00Z".parse().unwrap();
        let job = build(&cron, time, &time_zone("Europe/Berlin").unwrap());
        let job = serde_json::to_value(&job).unwrap();
        assert_eq!(
            job["metadata"],
            json!({
                "name": "nightly-29714460",
                "namespace": "a",
                "labels": {"l": "1"},
                "annotations": {
                    "a": "2",
                    "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-07-01T03:00:00+02:00",
                },
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "c1",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            })
        );
        assert_eq!(job["spec"]["backoffLimit"], 2);
        assert_eq!(local(time, &TimeZone::UTC), "2026-07-01T01:00:00Z");
        assert_eq!(
            local(time, &time_zone("Atlantic/Reykjavik").unwrap()),
            "2026-07-01T01:00:00Z"
        );
    }
}
