//! The time of a submission.

use jiff::Timestamp;
use longshore_client::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use longshore_diagnosis::names;

use crate::plan::PlannedObject;

/// Records the time when a workload is submitted. Does not apply to the runs of a schedule.
pub(super) fn stamp(object: &mut PlannedObject, now: Timestamp) {
    let add = |metadata: &mut ObjectMeta| {
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(names::SUBMITTED.to_owned(), format!("{now:.6}"));
    };
    match object {
        PlannedObject::Job(job) => add(&mut job.metadata),
        PlannedObject::CronJob(schedule) => add(&mut schedule.metadata),
        PlannedObject::JobSet(set) => {
            add(&mut set.metadata);
            // The Jobs of a JobSet have the annotations of its templates.
            for job in &mut set.spec.replicated_jobs {
                add(job.template.metadata.get_or_insert_default());
            }
        }
        _ => {}
    }
}
