//! The condition `StorageMigrating` of the CustomResourceDefinition of a migrated
//! resource, and the versions in which its objects are stored.

use jiff::Timestamp;
use longshore_client::{Error, Item, Patch, View, kinds::Any};
use longshore_model::time;
use serde_json::{Value, json};

use super::facts::GroupResource;

/// The field manager of the definition's status, as in Kubernetes.
const MANAGER: &str = "migration-runner-controller";
const CONDITION: &str = "StorageMigrating";

/// Records in the definition that a migration runs. Does nothing for other resources.
///
/// # Errors
/// The definition cannot be read or written, or has changed in the meantime.
pub(super) async fn start(
    definitions: &View<Any>,
    resource: &GroupResource,
    migration: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let Some(definition) = find(definitions, resource).await? else {
        return Ok(());
    };
    let raw = definition.raw()?;
    let message = format!("Migration {migration} is running");
    let condition = condition(&raw, ("True", "MigrationRunning", &message), now);
    apply(definitions, &definition, json!({"conditions": [condition]})).await
}

/// Records in the definition that the migration has ended. After a success, objects are stored only
/// in the storage version if the definition has not changed.
///
/// # Errors
/// The definition cannot be read or written, or has changed in the meantime.
pub(super) async fn finish(
    definitions: &View<Any>,
    resource: &GroupResource,
    has_succeeded: bool,
    now: Timestamp,
) -> Result<(), Error> {
    let Some(definition) = find(definitions, resource).await? else {
        return Ok(());
    };
    let raw = definition.raw()?;
    let status = finished(&raw, has_succeeded, now);
    apply(definitions, &definition, status).await
}

async fn find(
    definitions: &View<Any>,
    resource: &GroupResource,
) -> Result<Option<Item<Any>>, Error> {
    let name = format!("{}.{}", resource.resource, resource.group);
    match resource.group.is_empty() {
        true => Ok(None),
        false => definitions.find(&name).await,
    }
}

async fn apply(
    definitions: &View<Any>,
    definition: &Item<Any>,
    status: Value,
) -> Result<(), Error> {
    // The generation in the condition belongs to the version that was read.
    let body = json!({
        "metadata": {"resourceVersion": definition.version()},
        "status": status,
    });
    let patch = Patch::apply(body, MANAGER, true);
    definitions.patch_status(definition.name(), &patch).await?;
    Ok(())
}

fn condition(
    definition: &Value,
    (status, reason, message): (&str, &str, &str),
    now: Timestamp,
) -> Value {
    json!({
        "type": CONDITION,
        "status": status,
        "lastTransitionTime": time::seconds(now),
        "reason": reason,
        "message": message,
        "observedGeneration": definition["metadata"]["generation"],
    })
}

/// The status after the end of a migration.
fn finished(definition: &Value, has_succeeded: bool, now: Timestamp) -> Value {
    let conditions = definition["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let is_unchanged = conditions.any(|found| {
        found["type"] == CONDITION
            && found["observedGeneration"] == definition["metadata"]["generation"]
    });
    let (reason, message) = match (has_succeeded, is_unchanged) {
        (true, true) => (
            "MigrationSucceeded",
            "The migration has succeeded and the stored versions have been updated",
        ),
        (true, false) => (
            "MigrationSucceeded",
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
        ),
        (false, _) => ("MigrationFailed", "The migration has failed"),
    };
    let condition = condition(definition, ("False", reason, message), now);
    let mut status = json!({"conditions": [condition]});
    let mut versions = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten();
    if is_unchanged && let Some(storage) = versions.find(|version| version["storage"] == true) {
        status["storedVersions"] = json!([storage["name"]]);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_versions_change_only_with_an_unchanged_definition() {
        let definition = |generation: i64| {
            json!({
                "metadata": {"generation": generation},
                "spec": {"versions": [{"name": "v1"}, {"name": "v2", "storage": true}]},
                "status": {"conditions": [{"type": CONDITION, "observedGeneration": 2}]},
            })
        };
        let status = finished(&definition(2), true, Timestamp::UNIX_EPOCH);
        assert_eq!(status["storedVersions"], json!(["v2"]));
        assert_eq!(status["conditions"][0]["reason"], "MigrationSucceeded");
        assert_eq!(status["conditions"][0]["observedGeneration"], 2);
        let status = finished(&definition(3), true, Timestamp::UNIX_EPOCH);
        assert_eq!(status["storedVersions"], Value::Null);
        let message = status["conditions"][0]["message"].as_str();
        assert!(message.is_some_and(|message| message.ends_with("generation mismatch")));
    }
}
