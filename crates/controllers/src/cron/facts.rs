//! What the CronJob controller needs to know of a Job, read once from the
//! object.

use jiff::Timestamp;
use longshore_client::{Error, Item, kinds};
use serde::Deserialize;

use crate::key::Key;

/// How a Job has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With success.
    Complete,
    /// Without.
    Failed,
}

impl End {
    /// The condition that tells it.
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
    /// Name.
    pub(crate) name: String,
    /// Uid.
    pub(crate) uid: String,
    /// The CronJob's uid.
    pub(crate) owner: String,
    /// How it has ended, if it has.
    pub(crate) end: Option<End>,
    /// When it was started.
    pub(crate) started: Option<Timestamp>,
    /// When it ended with success.
    pub(crate) completed: Option<Timestamp>,
    /// Deletion has begun, or has been asked for.
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

/// The CronJob that a Job belongs to: where it is, and its uid.
pub(crate) fn owner(job: &Item<kinds::Job>) -> Option<(Key, &str)> {
    let owner = job.meta().controller()?;
    let is_cron = owner.kind == "CronJob" && owner.api_version.starts_with("batch/");
    let key = Key::new(job.namespace().unwrap_or_default(), &owner.name);
    is_cron.then_some((key, owner.uid.as_str()))
}

impl JobFacts {
    /// Of a Job that belongs to the CronJob of that uid.
    ///
    /// # Errors
    /// When its status cannot be read.
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

    /// Whether it has not ended and is to stay.
    pub(crate) fn is_running(&self) -> bool {
        self.end.is_none() && !self.deleting
    }
}
