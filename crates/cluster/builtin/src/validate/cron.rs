//! Validation of CronJobs: cron schedules and time zones.

use longshore_model::{
    CauseList,
    schedule::{Schedule, time_zone},
};

use super::{
    field_value::{Causes, FieldValue},
    job,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

/// Maximum length of the name: the 63 characters of a Job's name minus its suffix.
const MAX_NAME_LENGTH: usize = 52;

/// Validates a CronJob.
pub(crate) fn object(cron: &Object, causes: &mut CauseList) {
    let name = json::text(cron, "metadata.name");
    if name.len() > MAX_NAME_LENGTH {
        let detail = format!("must be no more than {MAX_NAME_LENGTH} characters");
        causes.push(Cause::invalid("metadata.name", name, &detail));
    }
    let (spec, causes) = (FieldValue::field(cron, "spec"), &mut Causes(causes));
    let schedule = spec.get("schedule");
    if schedule.text().is_empty() {
        causes.required(&schedule, "");
    } else {
        if let Err(problem) = schedule.text().parse::<Schedule>() {
            causes.invalid(&schedule, &problem.to_string());
        }
        if schedule.text().contains("TZ") {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            causes.invalid(&schedule, detail);
        }
    }
    causes.not_negative(&spec.get("startingDeadlineSeconds"));
    let policy = spec.get("concurrencyPolicy");
    if policy.is_set() {
        causes.one_of(&policy, &["Allow", "Forbid", "Replace"]);
    } else {
        causes.required(&policy, "");
    }
    for field in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        causes.not_negative(&spec.get(field));
    }
    zone(&spec.get("timeZone"), causes);
    let job = spec.get("jobTemplate").get("spec");
    if job.get("selector").is_set() {
        causes.invalid(&job.get("selector"), "`selector` will be auto-generated");
    }
    if job.get("manualSelector").is_true() {
        let path = job.get("manualSelector").path;
        let message = "Unsupported value: true: supported values: \"nil\", \"false\"";
        causes.0.push(Cause::plain(
            &path,
            "FieldValueNotSupported",
            message.to_owned(),
        ));
    }
    let empty = Object::new();
    job::spec(job.object().unwrap_or(&empty), &job.path, causes.0);
}

fn zone(zone: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !zone.is_set() {
        return;
    }
    let name = zone.text();
    if name.is_empty() {
        causes.invalid(zone, "timeZone must be nil or non-empty string");
    } else if name.eq_ignore_ascii_case("local") {
        causes.invalid(
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        );
    }
    if !name.is_empty() && name != "Local" && time_zone(name).is_none() {
        causes.invalid(zone, &format!("unknown time zone {name}"));
    }
}
