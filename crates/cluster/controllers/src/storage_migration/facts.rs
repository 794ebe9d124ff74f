//! The fields of a migration that determine its next step.

use jiff::Timestamp;
use longshore_client::{Error, Item, kinds::Any};
use serde::Deserialize;
use serde_json::{Value, json};

/// The resource of a migration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct GroupResource {
    pub(super) group: String,
    pub(super) resource: String,
}

/// The types of the conditions.
pub(super) const RUNNING: &str = "Running";
pub(super) const SUCCEEDED: &str = "Succeeded";
pub(super) const FAILED: &str = "Failed";

/// A StorageVersionMigration.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Migration {
    pub(super) name: String,
    pub(super) created: Option<Timestamp>,
    pub(super) resource: GroupResource,
    /// `status.resourceVersion`; empty if it is not set.
    pub(super) version: String,
    /// `status.conditions`.
    pub(super) conditions: Vec<Value>,
}

impl Migration {
    /// Reads a migration.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(super) fn of(item: &Item<Any>) -> Result<Self, Error> {
        let resource = item.field(&["spec", "resource"])?;
        let version = item.field(&["status", "resourceVersion"])?;
        let conditions = item.field(&["status", "conditions"])?;
        Ok(Self {
            name: item.name().to_owned(),
            created: item.meta().creation_timestamp,
            resource: resource.unwrap_or_default(),
            version: version.unwrap_or_default(),
            conditions: conditions.unwrap_or_default(),
        })
    }

    fn status_of(&self, kind: &str) -> Option<&str> {
        let found = self.conditions.iter().find(|found| found["type"] == kind);
        found.and_then(|condition| condition["status"].as_str())
    }

    pub(super) fn is_true(&self, kind: &str) -> bool {
        self.status_of(kind) == Some("True")
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_true(RUNNING)
    }

    /// Returns true if the migration has succeeded or failed.
    pub(super) fn has_ended(&self) -> bool {
        self.is_true(SUCCEEDED) || self.is_true(FAILED)
    }

    /// Sets a condition. The transition time changes only with the status.
    pub(super) fn set(
        &mut self,
        kind: &str,
        (status, reason, message): (&str, &str, &str),
        now: Timestamp,
    ) {
        let mut condition = json!({
            "type": kind,
            "status": status,
            "lastTransitionTime": longshore_model::time::seconds(now),
            "reason": reason,
            "message": message,
        });
        let mut known = self.conditions.iter_mut();
        match known.find(|known| known["type"] == kind) {
            Some(known) => {
                if known["status"] == status {
                    condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
                }
                *known = condition;
            }
            None => self.conditions.push(condition),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_time_of_a_condition_is_that_of_its_status() {
        let mut migration = Migration {
            name: "m".into(),
            created: None,
            resource: GroupResource::default(),
            version: String::new(),
            conditions: Vec::new(),
        };
        let at = |second| Timestamp::from_second(second).unwrap();
        migration.set(RUNNING, ("True", "A", ""), at(1));
        migration.set(RUNNING, ("True", "B", ""), at(2));
        assert_eq!(migration.conditions.len(), 1);
        let condition = &migration.conditions[0];
        assert_eq!(condition["reason"], "B");
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:01Z");
        assert!(migration.is_running() && !migration.has_ended());
        migration.set(RUNNING, ("False", "C", ""), at(3));
        assert_eq!(
            migration.conditions[0]["lastTransitionTime"],
            "1970-01-01T00:00:03Z"
        );
        migration.set(FAILED, ("True", "D", ""), at(3));
        assert!(!migration.is_running() && migration.has_ended());
    }
}
