//! The writer's part of a creation: checks the namespace and the name, and
//! allocates values that must be unique.

use std::sync::Arc;

use longshore_builtin::json;
use longshore_model::time;

use super::draft::{Draft, Kind, check_not_terminating, generate_name, namespace_of, prepare};
use crate::{
    Error, Object, Subject, Subresource, Written,
    kinds::KindId,
    machine::{
        JsonObject, Transaction, admission, namespace,
        ownership::{self, Author},
        reviews,
    },
    managed, object,
};

/// Number of names to try for a `generateName`.
const MAX_NAME_ATTEMPTS: usize = 8;

/// Checks and stores a new object.
pub(super) fn insert(tx: &mut Transaction<'_>, draft: Draft) -> Result<Written, Error> {
    let draft = draft.refreshed(tx)?;
    let Draft {
        view,
        info,
        mut object,
        unnamed,
        author,
        mut entries,
        mut warnings,
        is_reviewed,
    } = draft;
    let kind = tx.kinds().id(&view.info)?;
    check_not_terminating(tx.kinds().entry(kind), json::text(&object, "metadata.name"))?;
    let key = |object: &JsonObject| {
        object::key(
            namespace_of(&info, object),
            json::text(object, "metadata.name"),
        )
    };
    if let Some(namespace) = namespace_of(&info, &object) {
        let name = json::text(&object, "metadata.name");
        namespace::check(tx.state(), &info, namespace, name)?;
    }
    for _ in 1..MAX_NAME_ATTEMPTS {
        let Some(unnamed) = &unnamed else { break };
        if tx.get(kind, &key(&object)).is_none() {
            break;
        }
        object = unnamed.clone();
        generate_name(tx.ids(), &mut object);
        let place = Kind {
            entry: tx.kinds().entry(kind),
            view: &view,
        };
        entries = prepare(place, tx.state(), tx.ids(), &mut object, &author)?;
    }
    let exists = tx.get(kind, &key(&object)).map(|other| {
        let subject = Subject::new(&info, json::text(&object, "metadata.name"));
        let leaving = other.map().get("metadata").is_some_and(|metadata| {
            metadata
                .get("deletionTimestamp")
                .is_some_and(|at| !at.is_null())
        });
        match leaving {
            true => Error::StillThere(subject),
            false => Error::AlreadyExists(subject),
        }
    });
    // As in Kubernetes, reviews precede this check.
    if let Some(error) = exists.clone().filter(|_| !is_reviewed) {
        return Err(error);
    }
    let created = time::seconds(tx.now);
    ownership::set_times(&mut entries, &created);
    let managed = managed::text(entries);
    (tx.rules(kind).on_insert)(&mut object, &created);
    json::child(&mut object, "metadata").insert("creationTimestamp".into(), created.into());
    admission::admit(tx, kind, &mut object, None)?;
    if let Some(reviews) = tx.reviews().filter(|_| is_reviewed) {
        reviews.validate((&view.info, None), || {
            let shown = view.convert(object.clone());
            (reviews::with_managed(shown, &managed), None)
        })?;
    }
    if let Some(error) = exists {
        return Err(error);
    }
    admission::enforce_limits(tx, kind, &object, None, Subresource::None)?;
    warnings.extend(admission::warning(tx, kind, &object));
    let object = tx.for_storage(&view, &object)?.unwrap_or(object);
    Ok(Written {
        object: put(tx, kind, &object, &managed, &author)?,
        created: true,
        warnings,
    })
}

/// Writes an object. If it is too large, writes it without its managed fields,
/// unless it was applied.
fn put(
    tx: &mut Transaction<'_>,
    kind: KindId,
    object: &JsonObject,
    managed: &str,
    author: &Author,
) -> Result<Arc<Object>, Error> {
    match tx.put_managed(kind, object, Some(managed)) {
        Err(Error::ObjectTooLarge) if !matches!(author, Author::Applied(_)) => {
            tx.put_managed(kind, object, Some(""))
        }
        result => result,
    }
}
