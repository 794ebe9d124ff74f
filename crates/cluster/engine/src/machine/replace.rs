//! Replaces a stored object: validates the new state against the old one, and
//! stores it if it differs.

use std::sync::Arc;

use longshore_builtin::{KindRules, Lifecycle, defaults, json, validate};
use longshore_model::{KindInfo, time};
use serde_json::Value;

use super::{JsonObject, Reviews, Transaction, admission, limit_range, ownership::Author, reviews};
use crate::{
    Error, Object, Subject, Subresource, decode::complete, kinds::KindId, managed, view::View,
};

/// The error for an object without a name when the request has a name.
pub(super) fn missing_name(name: &str) -> Error {
    Error::BadRequest(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

/// Checks that the name and namespace are absent or equal to the request's.
pub(super) fn check_name_and_namespace(
    info: &KindInfo,
    namespace: Option<&str>,
    name: &str,
    object: &mut JsonObject,
) -> Result<(), Error> {
    let metadata = json::child(object, "metadata");
    let given = json::text(metadata, "name");
    if given.is_empty() {
        metadata.insert("name".into(), name.into());
    } else if given != name {
        return Err(Error::BadRequest(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    if !info.is_namespaced() {
        metadata.remove("namespace");
        return Ok(());
    }
    let (given, namespace) = (
        json::text(metadata, "namespace"),
        namespace.unwrap_or_default(),
    );
    if given.is_empty() {
        metadata.insert("namespace".into(), namespace.into());
    } else if given != namespace {
        return Err(Error::BadRequest(format!(
            "the namespace of the object ({given}) does not match the namespace on the request ({namespace})"
        )));
    }
    Ok(())
}

/// Checks that the uid and resource version in the request, if any, match the
/// object.
pub(super) fn check_preconditions(
    subject: &Subject,
    old: &Object,
    sent: &JsonObject,
) -> Result<(), Error> {
    let uid = json::text(sent, "metadata.uid");
    if !uid.is_empty() && uid != old.uid() {
        return Err(Error::Conflict {
            subject: subject.clone(),
            reason: format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                old.uid()
            ),
        });
    }
    let version = json::text(sent, "metadata.resourceVersion");
    if matches!(version, "" | "0") || version == old.revision().to_string() {
        Ok(())
    } else {
        Err(Error::stale(subject.clone()))
    }
}

/// The kind, version and subresource that a write targets.
#[derive(Clone, Copy)]
pub(super) struct WriteTarget<'a> {
    pub(super) kind: KindId,
    pub(super) view: &'a View,
    pub(super) subresource: Subresource,
}

/// Normalizes, validates and stores a new state.
pub(super) fn replace(
    tx: &mut Transaction<'_>,
    target: WriteTarget<'_>,
    old: &Arc<Object>,
    before: JsonObject,
    sent: JsonObject,
    author: Author,
) -> Result<Arc<Object>, Error> {
    let WriteTarget { kind, view, .. } = target;
    let info = tx.kinds().entry(kind).info.clone();
    let rules = tx.rules(kind).clone();
    let subject = Subject::new(&info, old.name());
    let (sent, author) = match tx.reviews() {
        Some(reviews) if target.subresource != Subresource::Scale => {
            mutate(tx, &reviews, target, (old, &before), sent, author)?
        }
        _ => (sent, author),
    };
    check_preconditions(&subject, old, &sent)?;
    let new = match target.subresource {
        Subresource::Status | Subresource::Approval => {
            let approval = target.subresource == Subresource::Approval;
            let mut new = with_status(&before, &sent, rules.status_metadata);
            if approval {
                defaults::on_approval(&before, &mut new, tx.now);
            } else {
                (rules.on_status)(&before, &mut new, tx.now);
            }
            complete(&info, &mut new);
            let causes = match view.custom_kind() {
                Some(kind) => kind.validate_status(&before, &new, &mut tx.warnings),
                None => {
                    let mut causes = match approval {
                        true => validate::approval(&before, &new),
                        false => validate::status(&rules, &before, &new, tx.now),
                    };
                    causes.extend(validate::metadata(&info, &rules, &before, &new));
                    causes
                }
            };
            if !causes.is_empty() {
                return Err(Error::Invalid { subject, causes });
            }
            admission::enforce_limits(tx, kind, &new, Some(&before), target.subresource)?;
            new
        }
        Subresource::EphemeralContainers => {
            let mut new = with_ephemeral_containers(&before, &sent);
            (rules.fill)(&mut new);
            let mut causes = validate::object(&info, &rules, &new);
            complete(&info, &mut new);
            causes.extend(validate::ephemeral_containers(&before, &new));
            if !causes.is_empty() {
                return Err(Error::Invalid { subject, causes });
            }
            admission::enforce_limits(tx, kind, &new, Some(&before), target.subresource)?;
            count_change(&rules, &before, &mut new);
            new
        }
        Subresource::Resize => {
            let mut new = with_resources(&before, &sent);
            limit_range::apply_defaults(tx.state(), &mut new);
            // Metadata does not change, including the annotation about the defaults.
            json::copy(&before, &mut new, "metadata");
            (rules.fill)(&mut new);
            let mut causes = validate::object(&info, &rules, &new);
            complete(&info, &mut new);
            causes.extend(validate::resize(&before, &new));
            if !causes.is_empty() {
                return Err(Error::Invalid { subject, causes });
            }
            admission::enforce_limits(tx, kind, &new, Some(&before), target.subresource)?;
            count_change(&rules, &before, &mut new);
            new
        }
        Subresource::None | Subresource::Scale | Subresource::Finalize => {
            let mut new = sent;
            if view.info.has_subresource("status") {
                json::copy(&before, &mut new, "status");
            }
            let mut causes = validate::deletion(&before, &new);
            keep_server_fields(&before, &mut new);
            if target.subresource != Subresource::Finalize {
                (rules.on_update)(&before, &mut new);
            }
            (rules.fill)(&mut new);
            (rules.derive_fields)(Some(&before), &mut new);
            admission::admit(tx, kind, &mut new, Some(&before))?;
            causes.extend(match target.subresource {
                Subresource::Finalize => validate::finalized(&info, &rules, &new),
                _ => validate::object(&info, &rules, &new),
            });
            // Also add the required fields to the old state.
            complete(&info, &mut new);
            causes.extend(validate::change(&rules, &before, &new));
            causes.extend(view.validate(Some(&before), &new, &mut tx.warnings));
            let causes = view.rename_cause_fields(causes);
            if !causes.is_empty() {
                return Err(Error::Invalid { subject, causes });
            }
            admission::check_change(tx, kind, &before, &new)?;
            admission::enforce_limits(tx, kind, &new, Some(&before), target.subresource)?;
            count_change(&rules, &before, &mut new);
            new
        }
    };
    record(tx, target, old, &before, &new, author)
}

/// Increments the generation if the change counts.
fn count_change(rules: &KindRules, before: &JsonObject, new: &mut JsonObject) {
    if rules.generation.counts(before, new) {
        let generation = json::number(before, "metadata.generation").unwrap_or_default();
        json::child(new, "metadata")
            .insert("generation".into(), generation.saturating_add(1).into());
    }
}

/// Executes mutating admission outside of the engine. As in Kubernetes, the author manages the
/// object as it was before.
fn mutate(
    tx: &Transaction<'_>,
    reviews: &Reviews,
    target: WriteTarget<'_>,
    (old, before): (&Arc<Object>, &JsonObject),
    mut sent: JsonObject,
    author: Author,
) -> Result<(JsonObject, Author), Error> {
    let (entry, view) = (tx.kinds().entry(target.kind), target.view);
    (entry.rules.fill)(&mut sent);
    let unreviewed = match target.subresource {
        Subresource::Status | Subresource::Approval => {
            with_status(before, &sent, entry.rules.status_metadata)
        }
        Subresource::EphemeralContainers => with_ephemeral_containers(before, &sent),
        Subresource::Resize => with_resources(before, &sent),
        _ => {
            let mut new = sent.clone();
            if view.info.has_subresource("status") {
                json::copy(before, &mut new, "status");
            }
            keep_server_fields(before, &mut new);
            complete(&entry.info, &mut new);
            new
        }
    };
    let is_applied = matches!(author, Author::Applied(_));
    let now = time::seconds(tx.now);
    let entries = view.with_converted(before, |before| {
        view.with_converted(&unreviewed, |new| {
            author.entries_of_update((entry, view, target.subresource), old, (before, new), &now)
        })
    });
    let managed = managed::text(entries.clone());
    let shown = reviews::with_managed(view.convert(sent), &managed);
    let shown_old = tx.shown(view, old)?;
    let mutated = reviews.mutate((&view.info, Some(old)), shown, || Some(shown_old))?;
    let mut mutated = view.to_stored_form(reviews::decode(view, mutated)?);
    check_name_and_namespace(&entry.info, old.namespace(), old.name(), &mut mutated)?;
    Ok((
        mutated,
        match is_applied {
            true => Author::Applied(entries),
            false => Author::Recorded(entries),
        },
    ))
}

/// Returns the stored pod with the ephemeral containers of the request.
fn with_ephemeral_containers(before: &JsonObject, sent: &JsonObject) -> JsonObject {
    let mut new = before.clone();
    let containers = json::at(sent, "spec.ephemeralContainers").cloned();
    let spec = json::child(&mut new, "spec");
    match containers {
        Some(containers) => spec.insert("ephemeralContainers".into(), containers),
        None => spec.remove("ephemeralContainers"),
    };
    // Every write stores the object in the current storage version.
    json::copy(sent, &mut new, "apiVersion");
    new
}

/// Returns the stored pod with the resources of the request. Lists with other containers are taken
/// from the request: validation rejects them.
fn with_resources(before: &JsonObject, sent: &JsonObject) -> JsonObject {
    let mut new = before.clone();
    json::copy(sent, &mut new, "apiVersion");
    let empty = JsonObject::new();
    let sent = sent.get("spec").and_then(Value::as_object);
    let sent = sent.unwrap_or(&empty);
    let spec = json::child(&mut new, "spec");
    if sent.contains_key("resources") {
        json::copy(sent, spec, "resources");
    }
    for list in ["containers", "initContainers"] {
        let name = |container: &JsonObject| json::text(container, "name").to_owned();
        let names = json::items(sent, list).map(name);
        if !names.eq(json::items(spec, list).map(name)) {
            json::copy(sent, spec, list);
            continue;
        }
        for (sent, container) in json::items(sent, list).zip(json::items_mut(spec, list)) {
            for field in ["resources", "resizePolicy"] {
                json::copy(sent, container, field);
            }
        }
    }
    new
}

/// Returns the stored object with the status of the request, and the metadata that a write of a
/// status may change.
fn with_status(before: &JsonObject, sent: &JsonObject, status_metadata: &[&str]) -> JsonObject {
    let mut new = before.clone();
    json::copy(sent, &mut new, "status");
    // Every write stores the object in the current storage version.
    json::copy(sent, &mut new, "apiVersion");
    if let Some(Value::Object(sent)) = sent.get("metadata") {
        let metadata = json::child(&mut new, "metadata");
        for field in status_metadata {
            json::copy(sent, metadata, field);
        }
    }
    new
}

/// Stores a new state and its managed fields if it differs from the old one.
fn record(
    tx: &mut Transaction<'_>,
    target: WriteTarget<'_>,
    old: &Arc<Object>,
    before: &JsonObject,
    new: &JsonObject,
    author: Author,
) -> Result<Arc<Object>, Error> {
    let reviews = tx.reviews();
    let reviews = reviews.filter(|_| target.subresource != Subresource::Scale);
    if before == new && author.leaves_managed_fields() && reviews.is_none() {
        return Ok(old.clone());
    }
    let now = time::seconds(tx.now);
    let was_applied = matches!(author, Author::Applied(_));
    let (kind, view) = (target.kind, target.view);
    let entry = tx.kinds().entry(kind);
    let entries = view.with_converted(before, |before| {
        view.with_converted(new, |new| {
            author.entries_of_update((entry, view, target.subresource), old, (before, new), &now)
        })
    });
    let is_unchanged =
        before == new && managed::is_stored(&entries, old.managed()) && !tx.is_outdated(view, old);
    let managed = match is_unchanged {
        true => old.managed().to_owned(),
        false => managed::text(entries),
    };
    if let Some(reviews) = reviews {
        let shown_old = tx.shown(view, old)?;
        reviews.validate((&view.info, Some(old)), || {
            let shown = reviews::with_managed(view.convert(new.clone()), &managed);
            (shown, Some(shown_old))
        })?;
    }
    if is_unchanged {
        return Ok(old.clone());
    }
    let kept = tx.for_storage(view, new)?;
    let new = kept.as_ref().unwrap_or(new);
    match keep(tx, kind, old, new, &managed) {
        // If the object is too large, drop its managed fields first.
        Err(Error::ObjectTooLarge) if !was_applied => keep(tx, kind, old, new, ""),
        result => result,
    }
}

/// Restores fields that only the server may change.
fn keep_server_fields(before: &JsonObject, new: &mut JsonObject) {
    let Some(Value::Object(old)) = before.get("metadata") else {
        return;
    };
    let metadata = json::child(new, "metadata");
    for name in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
        "resourceVersion",
    ] {
        json::copy(old, metadata, name);
    }
}

/// Stores a new state, unless it equals the stored one. Removes a terminating object that has lost
/// its last finalizer.
pub(super) fn store(
    tx: &mut Transaction<'_>,
    kind: KindId,
    old: &Arc<Object>,
    before: &JsonObject,
    new: &JsonObject,
) -> Result<Arc<Object>, Error> {
    if before == new {
        return Ok(old.clone());
    }
    keep(tx, kind, old, new, old.managed())
}

fn keep(
    tx: &mut Transaction<'_>,
    kind: KindId,
    old: &Arc<Object>,
    new: &JsonObject,
    managed: &str,
) -> Result<Arc<Object>, Error> {
    if is_finished(tx.rules(kind).lifecycle, new) {
        let revision = tx.state().revision + 1;
        let last = Object::encode(new, managed, tx.rules(kind), revision, Some(old));
        tx.remove(kind, old);
        return Ok(Arc::new(last));
    }
    tx.put_managed(kind, new, Some(managed))
}

/// Returns true if a terminating object can be removed.
fn is_finished(lifecycle: Lifecycle, object: &JsonObject) -> bool {
    let has = |path| {
        json::at(object, path)
            .and_then(Value::as_array)
            .is_some_and(|l| !l.is_empty())
    };
    json::at(object, "metadata.deletionTimestamp").is_some()
        && json::number(object, "metadata.deletionGracePeriodSeconds").unwrap_or_default() == 0
        && !has("metadata.finalizers")
        && !(lifecycle == Lifecycle::Namespace && has("spec.finalizers"))
}
