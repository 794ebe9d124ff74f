//! The FlowSchemas and PriorityLevelConfigurations of a new cluster. A controller maintains them.
//!
//! All clusters have the same objects except for UIDs and times. Because there are many, they are
//! created once per process, in a temporary state, and copied from it.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use longshore_builtin::json as fields;
use longshore_model::{
    PatchKind,
    flow_control::{self, CONSUMER, GROUP, LEVELS, PRODUCER, SCHEMAS},
    time,
};
use serde_json::json;

use super::{JsonObject, Machine, Transaction, create, ownership::Author, update};
use crate::{Clock, Error, Patch, RandomIds, Subresource, Target, WriteOptions};

/// Both kinds, and their defaults.
const KINDS: [(&str, &[flow_control::DefaultObject]); 2] = [
    ("PriorityLevelConfiguration", LEVELS),
    ("FlowSchema", SCHEMAS),
];

/// An object as it is stored, at [`Timestamp::UNIX_EPOCH`].
struct Prepared {
    kind: &'static str,
    object: JsonObject,
    managed: String,
}

/// A clock that stands at [`Timestamp::UNIX_EPOCH`].
struct Epoch;

impl Clock for Epoch {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// Creates the default objects. FlowSchemas get their condition at once.
pub(super) fn create_defaults(tx: &mut Transaction<'_>) -> Result<(), Error> {
    static PREPARED: OnceLock<Vec<Prepared>> = OnceLock::new();

    let prepared = match PREPARED.get() {
        Some(prepared) => prepared,
        None => {
            let prepared = prepare(tx)?;
            PREPARED.get_or_init(|| prepared)
        }
    };
    let (epoch, now) = (time::seconds(Timestamp::UNIX_EPOCH), time::seconds(tx.now));
    for Prepared {
        kind,
        object,
        managed,
    } in prepared
    {
        let Some(id) = tx.kinds().builtin_id(GROUP, kind) else {
            continue;
        };
        let mut object = object.clone();
        let metadata = fields::child(&mut object, "metadata");
        metadata.insert("uid".into(), tx.ids().uid().into());
        metadata.insert("creationTimestamp".into(), now.clone().into());
        let status = object.get_mut("status");
        let conditions = status.and_then(|status| status.get_mut("conditions")?.as_array_mut());
        for condition in conditions.into_iter().flatten() {
            condition["lastTransitionTime"] = now.clone().into();
        }
        tx.put_managed(id, &object, Some(&managed.replace(&epoch, &now)))?;
    }
    Ok(())
}

/// Creates the objects by requests, in a copy of the state.
fn prepare(tx: &Transaction<'_>) -> Result<Vec<Prepared>, Error> {
    let state = tx.state().clone();
    let limits = tx.machine.limits;
    let mut machine = Machine::new(state, Arc::new(Epoch), Arc::new(RandomIds), limits);
    machine.execute(false, |tx| {
        KINDS
            .iter()
            .try_for_each(|(kind, defaults)| create_by_requests(tx, kind, defaults))
    })?;
    let mut prepared = Vec::new();
    for (kind, _) in KINDS {
        let Some(id) = machine.state.kinds.builtin_id(GROUP, kind) else {
            continue;
        };
        let objects = machine.state.table(id).objects.values();
        prepared.extend(objects.map(|object| Prepared {
            kind,
            object: object.map(),
            managed: object.managed().to_owned(),
        }));
    }
    Ok(prepared)
}

fn create_by_requests(
    tx: &mut Transaction<'_>,
    kind: &str,
    defaults: &[flow_control::DefaultObject],
) -> Result<(), Error> {
    let Some(id) = tx.kinds().builtin_id(GROUP, kind) else {
        return Ok(());
    };
    let info = tx.kinds().entry(id).info.clone();
    for default in defaults {
        let author = Author::Manager {
            name: PRODUCER.to_owned(),
            sent: None,
        };
        create::create_in_transaction(tx, &info, None, default.object(), author)?;
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
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Engine, ListRequest, Options};

    #[test]
    fn copies_differ_in_uids_and_have_the_time_of_their_cluster() {
        let schemas = || {
            let engine = Engine::open(Options::default()).unwrap();
            let kind = engine.find(GROUP, "v1", "flowschemas").unwrap();
            engine.list(&ListRequest::of(kind)).unwrap().items
        };
        let (first, second) = (schemas(), schemas());
        assert_eq!((first.len(), second.len()), (11, 11));
        for (a, b) in first.iter().zip(&second) {
            assert_eq!(a.name(), b.name());
            assert_ne!(a.uid(), b.uid());
            let value = b.value();
            assert!(!value.to_string().contains("1970-01-01"), "{value}");
            let created = &value["metadata"]["creationTimestamp"];
            assert_eq!(
                value["status"]["conditions"][0]["lastTransitionTime"],
                *created
            );
            let managed = value["metadata"]["managedFields"].as_array().unwrap();
            assert_eq!(managed.len(), 2);
            assert!(managed.iter().all(|entry| entry["time"] == *created));
            assert_eq!(
                value["metadata"]["resourceVersion"],
                b.revision().to_string()
            );
        }
    }
}
