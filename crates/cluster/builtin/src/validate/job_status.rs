//! Validation of a Job's status. Most rules apply only to the fields that a write changes, so that
//! a status that became invalid through a change of the spec can still be updated.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use longshore_model::{CauseList, StatusCause};
use serde_json::Value;

use crate::{
    cause::{Cause, not_negative},
    json::{self, Object},
};

/// Validates a change of a Job's status.
pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    let change = Change {
        before: State::of(before),
        after: State::of(after),
    };
    numbers(after, causes);
    change.conditions(causes);
    change.times(causes);
    change.pods(causes);
    change.indexes(causes);
    change.counters(causes);
}

/// Validates the counters themselves and the uncounted pods.
fn numbers(job: &Object, causes: &mut CauseList) {
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        let path = format!("status.{field}");
        not_negative(job, &path, &path, causes);
    }
    let mut seen = Vec::new();
    for list in ["succeeded", "failed"] {
        let path = format!("status.uncountedTerminatedPods.{list}");
        let uids = json::at(job, &path).and_then(Value::as_array);
        for (index, uid) in uids.into_iter().flatten().enumerate() {
            let path = format!("{path}[{index}]");
            if uid == "" {
                causes.push(Cause::invalid(&path, "", "must not be empty"));
            } else if seen.contains(&uid) {
                causes.push(Cause::duplicate(&path, uid.clone()));
            }
            seen.push(uid);
        }
    }
}

/// A Job and its conditions that are true.
struct State<'a> {
    job: &'a Object,
    complete: bool,
    failed: bool,
    failure_target: bool,
    criteria_met: bool,
    suspended: Option<bool>,
}

impl<'a> State<'a> {
    fn of(job: &'a Object) -> Self {
        let condition = |kind: &str| {
            let list = json::at(job, "status.conditions").and_then(Value::as_array)?;
            let found = list.iter().find(|one| one["type"] == kind)?;
            match found["status"].as_str() {
                Some("True") => Some(true),
                Some("False") => Some(false),
                _ => None,
            }
        };
        let is = |kind| condition(kind) == Some(true);
        Self {
            job,
            complete: is("Complete"),
            failed: is("Failed"),
            failure_target: is("FailureTarget"),
            criteria_met: is("SuccessCriteriaMet"),
            suspended: condition("Suspended"),
        }
    }

    fn finished(&self) -> bool {
        self.complete || self.failed
    }

    fn status(&self, field: &str) -> Option<&'a Value> {
        json::at(self.job, &format!("status.{field}"))
    }

    fn count(&self, field: &str) -> i64 {
        self.status(field).and_then(Value::as_i64).unwrap_or(0)
    }

    fn time(&self, field: &str) -> Option<Timestamp> {
        self.status(field)?.as_str()?.parse().ok()
    }

    fn indexes(&self, field: &str) -> &'a str {
        self.status(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn uncounted(&self) -> usize {
        let pods = self.status("uncountedTerminatedPods");
        let pods = pods.and_then(Value::as_object);
        let lists = pods.into_iter().flat_map(|pods| pods.values());
        lists.filter_map(Value::as_array).map(Vec::len).sum()
    }

    fn spec(&self, field: &str) -> Option<&'a Value> {
        json::at(self.job, &format!("spec.{field}"))
    }

    fn is_suspended_by_spec(&self) -> bool {
        self.spec("suspend") == Some(&Value::Bool(true))
    }
}

struct Change<'a> {
    before: State<'a>,
    after: State<'a>,
}

impl<'a> Change<'a> {
    fn differs<T: PartialEq>(&self, of: impl Fn(&State<'a>) -> T) -> bool {
        of(&self.before) != of(&self.after)
    }

    fn status_differs(&self, field: &str) -> bool {
        self.before.status(field) != self.after.status(field)
    }

    fn conditions(&self, causes: &mut CauseList) {
        let State {
            complete,
            failed,
            failure_target,
            criteria_met,
            ..
        } = self.after;
        let completes = self.differs(|job| job.complete);
        let fails = self.differs(|job| job.failed);
        let mut report = |is_wrong: bool, detail: &str| {
            if is_wrong {
                causes.push(of_conditions(detail));
            }
        };
        report(
            (completes || fails) && complete && failed,
            "cannot set Complete=True and Failed=true conditions",
        );
        report(
            (completes || self.differs(|job| job.failure_target)) && complete && failure_target,
            "cannot set Complete=True and FailureTarget=true conditions",
        );
        report(
            (fails || self.status_differs("failedIndexes")) && failed && !failure_target,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        );
        report(
            (completes || self.differs(|job| job.criteria_met)) && complete && !criteria_met,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        );
        report(
            criteria_met && failed,
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        );
        report(
            criteria_met && failure_target,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        );
        report(
            self.after.spec("successPolicy").is_some() && !criteria_met && complete,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        );
        for (kind, was, is) in [
            ("Failed", self.before.failed, failed),
            ("Complete", self.before.complete, complete),
            ("FailureTarget", self.before.failure_target, failure_target),
        ] {
            report(
                was && !is,
                &format!("cannot disable the terminal {kind}=True condition"),
            );
        }
    }

    fn times(&self, causes: &mut CauseList) {
        const START: &str = "status.startTime";
        const COMPLETION: &str = "status.completionTime";
        let (before, after) = (&self.before, &self.after);
        let finishes = self.differs(State::finished);
        let starts = self.differs(|job| job.time("startTime"));
        let ends = self.differs(|job| job.time("completionTime"));
        let (start, end) = (after.time("startTime"), after.time("completionTime"));
        let mut report = |is_wrong: bool, field: &str, detail: &str| {
            if is_wrong {
                let value = json::at(after.job, field).cloned().unwrap_or_default();
                causes.push(Cause::invalid(field, value, detail));
            }
        };
        let settles = self.differs(|job| job.complete) || ends;
        report(
            settles && end.is_some() && !after.complete,
            COMPLETION,
            "cannot set completionTime when there is no Complete=True condition",
        );
        report(
            (starts || ends) && start.zip(end).is_some_and(|(start, end)| end < start),
            COMPLETION,
            "must be equal to or after `startTime`",
        );
        report(
            ends && before.time("completionTime").is_some() && end.is_some(),
            COMPLETION,
            "field is immutable",
        );
        let resumes = before.suspended == Some(true) && after.suspended == Some(false);
        report(
            starts
                && before.time("startTime").is_some()
                && !resumes
                && !after.is_suspended_by_spec(),
            START,
            "field is immutable for unsuspended job once set",
        );
        if settles && end.is_none() && after.complete {
            let detail = "completionTime is required for Complete jobs";
            causes.push(Cause::required(COMPLETION, detail));
        }
        let nothing_to_do = after.is_suspended_by_spec()
            && after.spec("completions").and_then(Value::as_i64) == Some(0);
        if (finishes || starts) && !nothing_to_do && start.is_none() && after.finished() {
            let detail = "startTime is required for finished job";
            causes.push(Cause::required(START, detail));
        }
    }

    /// A finished Job has no active pods, and no more pods are ready than active.
    fn pods(&self, causes: &mut CauseList) {
        let after = &self.after;
        let finishes = self.differs(State::finished);
        let mut report = |is_wrong: bool, field: &str, detail: &str| {
            if is_wrong {
                let value = after.status(field).cloned().unwrap_or_default();
                causes.push(Cause::invalid(&format!("status.{field}"), value, detail));
            }
        };
        for (field, detail) in [
            ("active", "active>0 is invalid for finished job"),
            ("terminating", "terminating>0 is invalid for finished job"),
        ] {
            let counts = finishes || self.status_differs(field);
            report(
                counts && after.finished() && after.count(field) > 0,
                field,
                detail,
            );
        }
        let field = "uncountedTerminatedPods";
        report(
            (finishes || self.status_differs(field)) && after.finished() && after.uncounted() > 0,
            field,
            "must be empty for finished job",
        );
        report(
            (self.status_differs("ready") || self.status_differs("active"))
                && after.count("ready") > after.count("active"),
            "ready",
            "cannot set more ready pods than active",
        );
    }

    fn indexes(&self, causes: &mut CauseList) {
        let (completed, failed) = ("completedIndexes", "failedIndexes");
        let completions = self.after.spec("completions").and_then(Value::as_i64);
        let limited = self.after.spec("backoffLimitPerIndex").is_some();
        let indexed = self.after.spec("completionMode") == Some(&"Indexed".into());
        let mut report = |field: &str, detail: &str| {
            let shown = self.after.indexes(field);
            causes.push(Cause::invalid(&format!("status.{field}"), shown, detail));
        };
        let wrong = |field| intervals(self.after.indexes(field), completions?).err();
        if self.status_differs(completed) {
            if let Some(problem) = wrong(completed) {
                report(
                    completed,
                    &format!("error parsing completedIndexes: {problem}"),
                );
            }
            if !indexed && !self.after.indexes(completed).is_empty() {
                report(
                    completed,
                    "cannot set non-empty completedIndexes when non-indexed completion mode",
                );
            }
        }
        if self.status_differs(failed) {
            if let Some(problem) = wrong(failed).filter(|_| limited) {
                report(failed, &format!("error parsing failedIndexes: {problem}"));
            }
            if !limited && self.after.status(failed).is_some() {
                report(
                    failed,
                    "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
                );
            }
        }
        if (self.status_differs(completed) || self.status_differs(failed))
            && let Some(completions) = completions
            && let Some(index) = self.overlap(completions)
        {
            report(
                failed,
                &format!("failedIndexes and completedIndexes overlap at index: {index}"),
            );
        }
    }

    /// The first index that is listed as both completed and failed.
    fn overlap(&self, completions: i64) -> Option<i64> {
        // Invalid index lists are reported by another rule.
        let read = |field| {
            let parts = self.after.indexes(field).split(',');
            parts.filter_map(move |part| interval(part, completions).ok())
        };
        let failed: Vec<_> = read("failedIndexes").collect();
        let mut both = read("completedIndexes").filter_map(|done| {
            let begins = failed.partition_point(|failed| failed.end() < done.start());
            let first = failed.get(begins)?;
            (first.start() <= done.end()).then(|| *done.start().max(first.start()))
        });
        both.next()
    }

    fn counters(&self, causes: &mut CauseList) {
        let spec = |field| self.after.spec(field);
        // Indexed Jobs can be scaled down.
        let scales = spec("completionMode") == Some(&"Indexed".into())
            && spec("completions") == spec("parallelism");
        for field in ["failed", "succeeded"] {
            let (was, is) = (self.before.count(field), self.after.count(field));
            if is < was && !(field == "succeeded" && scales) {
                let detail = format!("cannot decrease the {field} counter");
                causes.push(Cause::invalid(&format!("status.{field}"), is, &detail));
            }
        }
    }
}

/// An error about the conditions, whose message omits their value.
fn of_conditions(detail: &str) -> StatusCause {
    let message = format!("Invalid value: {detail}");
    Cause::plain("status.conditions", "FieldValueInvalid", message)
}

/// Parses indexes such as `1,3-5`. Intervals must be in ascending order.
fn intervals(text: &str, completions: i64) -> Result<(), String> {
    let mut last = None;
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let part = interval(part, completions)?;
        if let Some(last) = last.filter(|last| last >= part.start()) {
            let next = part.start();
            return Err(format!(
                "non-increasing order, previous: {last}, current: {next}"
            ));
        }
        last = Some(*part.end());
    }
    Ok(())
}

fn interval(text: &str, completions: i64) -> Result<RangeInclusive<i64>, String> {
    let number = |text: &str| {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if number >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        Ok(number)
    };
    let Some((first, last)) = text.split_once('-') else {
        return number(text).map(|one| one..=one);
    };
    if last.contains('-') {
        return Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        ));
    }
    let (first, last) = (number(first)?, number(last)?);
    if first >= last {
        return Err(format!(
            "non-increasing order, previous: {first}, current: {last}"
        ));
    }
    Ok(first..=last)
}
