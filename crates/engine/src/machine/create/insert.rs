//! The writer's part of a creation: it checks the namespace and the name, and gives
//! what is scarce.

use std::sync::Arc;

use longshore_model::time;

use super::draft::{Draft, Kind, check_stays, name_it, namespace_of, prepare};
use crate::{
    Error, Object, Subject, Written, json,
    kinds::KindId,
    machine::{
        Draftable, Transaction, namespace,
        ownership::{self, Author},
        priority, service,
    },
    managed, object,
};

/// Names tried for one `generateName`.
const TRIES: usize = 8;

/// Checks and stores one new object.
pub(super) fn insert(tx: &mut Transaction<'_>, draft: Draft) -> Result<Written, Error> {
    let draft = draft.renewed(tx)?;
    let Draft {
        view,
        info,
        mut object,
        unnamed,
        author,
        mut entries,
        warnings,
    } = draft;
    let kind = tx.kinds().id(&view.info)?;
    check_stays(tx.kinds().entry(kind), json::text(&object, "metadata.name"))?;
    let key = |object: &Draftable| {
        object::key(
            namespace_of(&info, object),
            json::text(object, "metadata.name"),
        )
    };
    if let Some(namespace) = namespace_of(&info, &object) {
        let name = json::text(&object, "metadata.name");
        namespace::check(tx.state(), &info, namespace, name)?;
    }
    for _ in 1..TRIES {
        let Some(unnamed) = &unnamed else { break };
        if tx.get(kind, &key(&object)).is_none() {
            break;
        }
        object = unnamed.clone();
        name_it(tx.ids(), &mut object);
        let place = Kind {
            entry: tx.kinds().entry(kind),
            view: &view,
        };
        entries = prepare(place, tx.state(), tx.ids(), &mut object, &author)?;
    }
    if let Some(other) = tx.get(kind, &key(&object)) {
        let subject = Subject::new(&info, json::text(&object, "metadata.name"));
        let leaving = other.map().get("metadata").is_some_and(|metadata| {
            metadata
                .get("deletionTimestamp")
                .is_some_and(|at| !at.is_null())
        });
        return Err(match leaving {
            true => Error::StillThere(subject),
            false => Error::AlreadyExists(subject),
        });
    }
    let created = time::seconds(tx.now);
    ownership::date(&mut entries, &created);
    let managed = managed::text(entries);
    if info.gvk.group.is_empty() && &*info.gvk.kind == "PersistentVolume" {
        let status = json::child(&mut object, "status");
        status.insert("lastPhaseTransitionTime".into(), created.clone().into());
    }
    if &*info.gvk.group == "apiregistration.k8s.io" {
        let status = json::child(&mut object, "status");
        for condition in json::items_mut(status, "conditions") {
            condition.insert("lastTransitionTime".into(), created.clone().into());
        }
    }
    json::child(&mut object, "metadata").insert("creationTimestamp".into(), created.into());
    match (&*info.gvk.group, &*info.gvk.kind) {
        ("", "Service") => service::allocate(tx, kind, &info, &mut object, None)?,
        ("scheduling.k8s.io", "PriorityClass") => priority::one_default(tx, &info, &object)?,
        ("", "Namespace") => {
            return Ok(Written {
                object: tx.put_managed(kind, &object, Some(&managed))?,
                created: true,
                warnings,
            });
        }
        _ => {}
    }
    let object = view.kept_form(&object).unwrap_or(object);
    Ok(Written {
        object: put(tx, kind, &object, &managed, &author)?,
        created: true,
        warnings,
    })
}

/// Writes an object. One that is too large is written without its managed
/// fields, unless it was applied.
fn put(
    tx: &mut Transaction<'_>,
    kind: KindId,
    object: &Draftable,
    managed: &str,
    author: &Author,
) -> Result<Arc<Object>, Error> {
    match tx.put_managed(kind, object, Some(managed)) {
        Err(Error::ObjectTooLarge) if matches!(author, Author::Manager { .. }) => {
            tx.put_managed(kind, object, Some(""))
        }
        result => result,
    }
}
