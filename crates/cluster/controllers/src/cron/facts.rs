//! The fields of a Job that the CronJob controller reads.

use jiff::Timestamp;
use longshore_client::{Error, Item, kinds};
use serde::Deserialize;

use crate::key::Key;

/// The final condition of a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The Job succeeded.
    Complete,
    /// The Job failed.
    Failed,
}

impl End {
    /// Returns the type of its condition.
    pub(crate) fn condition(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        }
    }
}

/// A Job of a CronJob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobFacts {
    /// The Job's name.
    pub(crate) name: String,
    /// The Job's UID.
    pub(crate) uid: String,
    /// The UID of the CronJob.
    pub(crate) owner: String,
    /// The final condition, if the Job has ended.
    pub(crate) end: Option<End>,
    /// The start time.
    pub(crate) started: Option<Timestamp>,
    /// The completion time.
    pub(crate) completed: Option<Timestamp>,
    /// True if the Job is being deleted, or its deletion has been requested.
    pub(crate) deleting: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Option<Vec<Condition>>,
    start_time: Option<Timestamp>,
    completion_time: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

/// Returns the key and the UID of the CronJob that a Job belongs to.
pub(crate) fn owner(job: &Item<kinds::Job>) -> Option<(Key, &str)> {
    let owner = job.meta().controller()?;
    let is_cron = owner.kind == "CronJob" && owner.api_version.starts_with("batch/");
    let key = Key::new(job.namespace().unwrap_or_default(), &owner.name);
    is_cron.then_some((key, owner.uid.as_str()))
}

impl JobFacts {
    /// Reads a Job of the CronJob with the given UID.
    ///
    /// # Errors
    /// The Job's status cannot be read.
    pub(crate) fn of(job: &Item<kinds::Job>, owner: &str) -> Result<Self, Error> {
        let status: Status = job.field(&["status"])?.unwrap_or_default();
        let is_true = |kind: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.any(|condition| condition.kind == kind && condition.status == "True")
        };
        let mut ends = [End::Complete, End::Failed].into_iter();
        Ok(Self {
            name: job.name().to_owned(),
            uid: job.uid().to_owned(),
            owner: owner.to_owned(),
            end: ends.find(|end| is_true(end.condition())),
            started: status.start_time,
            completed: status.completion_time,
            deleting: job.meta().deletion_timestamp.is_some(),
        })
    }

    /// Returns true if the Job has not ended and is not being deleted.
    pub(crate) fn is_running(&self) -> bool {
        self.end.is_none() && !self.deleting
    }
}
