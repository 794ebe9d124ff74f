//! The controller's writes of the status.

use longshore_client::{Error, Item, View, kinds::Any};
use serde_json::json;

use super::facts::Migration;

/// Replaces the status if the migration has not changed since it was read.
///
/// # Errors
/// The migration has changed in the meantime, or the server rejects the status.
pub(super) async fn store_status(
    view: &View<Any>,
    item: &Item<Any>,
    migration: &Migration,
) -> Result<(), Error> {
    let mut object = item.raw()?;
    object["status"] = match migration.version.as_str() {
        "" => json!({"conditions": migration.conditions}),
        version => json!({"conditions": migration.conditions, "resourceVersion": version}),
    };
    match view.replace_status(item.name(), &object).await {
        Err(error) if error.is_not_found() => Ok(()),
        done => done.map(drop),
    }
}
