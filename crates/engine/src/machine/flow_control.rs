//! The FlowSchemas and PriorityLevelConfigurations of a new cluster. A controller keeps them.

use longshore_model::{
    PatchKind,
    flow_control::{self, CONSUMER, GROUP, LEVELS, PRODUCER, SCHEMAS},
    time,
};
use serde_json::json;

use super::{Transaction, create, ownership::Author, update};
use crate::{Error, Patch, Subresource, Target, WriteOptions};

/// Creates the default objects. FlowSchemas get their condition at once.
pub(super) fn create_defaults(tx: &mut Transaction<'_>) -> Result<(), Error> {
    let author = || Author::Manager {
        name: PRODUCER.to_owned(),
        sent: None,
    };
    for (kind, defaults) in [
        ("PriorityLevelConfiguration", LEVELS),
        ("FlowSchema", SCHEMAS),
    ] {
        let Some(id) = tx.kinds().builtin_id(GROUP, kind) else {
            continue;
        };
        let info = tx.kinds().entry(id).info.clone();
        for default in defaults {
            create::create_in_transaction(tx, &info, None, default.object(), author())?;
            let Some(level) = default.level() else {
                continue;
            };
            let condition = flow_control::dangling(level, true, &time::seconds(tx.now));
            let patch = Patch {
                target: Target {
                    kind: info.clone(),
                    namespace: None,
                    name: default.name.to_owned(),
                },
                subresource: Subresource::Status,
                kind: PatchKind::Apply,
                body: json!({
                    "apiVersion": info.api_version(),
                    "kind": kind,
                    "metadata": {"name": default.name},
                    "status": {"conditions": [condition]},
                }),
                options: WriteOptions {
                    field_manager: Some(CONSUMER.to_owned()),
                    force: true,
                    ..WriteOptions::default()
                },
            };
            update::patch(tx, patch)?;
        }
    }
    Ok(())
}
