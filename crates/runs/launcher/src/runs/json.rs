//! The JSON of a run in a list. Pure.

use longshore_diagnosis::names::RunName;
use serde_json::{Value, json};

use super::RunSummary;

impl RunSummary {
    /// The JSON of `longshore runs --output json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let roles: Vec<Value> = self
            .run
            .roles
            .iter()
            .map(|role| json!({"name": role.name, "count": role.count, "service": role.service}))
            .collect();
        json!({
            "name": self.run.name.as_str(),
            "namespace": self.run.namespace,
            "fullName": self.full_name,
            "owner": self.owner.as_ref().map(|owner| &owner.name),
            "ownerIsLocal": self.owner.as_ref().is_some_and(|owner| owner.is_local),
            "state": self.state.as_str(),
            "created": self.created,
            "finished": self.finished,
            "exitCode": self.exit_code,
            "succeeded": self.succeeded.0,
            "tasks": self.succeeded.1,
            "restarts": self.restarts,
            "webhookProblem": self.webhook_problem,
            "roles": roles,
            "labels": self.labels,
            "tags": self.tags,
            "note": self.note,
            "command": self.command,
            "bundle": self.bundle,
            "schedule": self.schedule,
            "madeBy": self.run.schedule.as_ref().map(RunName::as_str),
        })
    }
}
