//! Deletes: preconditions, grace periods, finalizers, and propagation to
//! dependents.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use longshore_builtin::{KindRules, Lifecycle, cause::Cause, json};
use longshore_model::{KindInfo, time};
use serde_json::Value;

use super::{JsonObject, MAX_BYTES_PER_TURN, MAX_OBJECTS_PER_TURN, Transaction, namespace};
use crate::{
    DeleteCollection, DeleteOptions, Deleted, Error, Object, Page, Propagation, Subject, Target,
    custom, kinds::KindId, list, object, request::options_invalid,
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Deletes an object or marks it for deletion.
pub(crate) fn delete(
    tx: &mut Transaction<'_>,
    target: &Target,
    options: &DeleteOptions,
) -> Result<Deleted, Error> {
    check_options(options)?;
    let kind = tx.kinds().id(&target.kind)?;
    let info = tx.kinds().entry(kind).info.clone();
    let subject = Subject::new(&info, &target.name);
    let namespace = target.namespace.as_deref().filter(|_| info.is_namespaced());
    let old = tx
        .get(kind, &object::key(namespace, &target.name))
        .cloned()
        .ok_or_else(|| Error::NotFound(subject.clone()))?;
    if tx.rules(kind).lifecycle == Lifecycle::Namespace && namespace::is_protected(&target.name) {
        let reason = "this namespace may not be deleted".to_owned();
        return Err(Error::Forbidden {
            subject,
            reason,
            causes: Vec::new(),
        });
    }
    check_preconditions(&subject, &old, options)?;
    review(tx, &target.kind, &old)?;
    delete_one(tx, kind, &old, options)
}

/// Deletes all matching objects in one turn of the writer and returns their
/// previous states. Returns `None` without any change if there are too many.
pub(crate) fn delete_collection(
    tx: &mut Transaction<'_>,
    request: &DeleteCollection,
) -> Result<Option<Page>, Error> {
    let info = &request.list.kind;
    let kind = tx.kinds().id(info)?;
    if tx.state().table(kind).objects.len() > MAX_OBJECTS_PER_TURN {
        return Ok(None);
    }
    let page = list::list(tx.state(), &request.list)?;
    let bytes: usize = page.items.iter().map(|item| item.bytes().len()).sum();
    if bytes > MAX_BYTES_PER_TURN {
        return Ok(None);
    }
    delete_listed(tx, info, &page.items, &request.options)?;
    Ok(Some(page))
}

/// Deletes the objects of a list that still exist.
pub(crate) fn delete_listed(
    tx: &mut Transaction<'_>,
    info: &KindInfo,
    listed: &[Arc<Object>],
    options: &DeleteOptions,
) -> Result<(), Error> {
    let kind = tx.kinds().id(info)?;
    let is_namespace = tx.rules(kind).lifecycle == Lifecycle::Namespace;
    for listed in listed {
        // The list may be from an earlier revision.
        let Some(old) = tx.get(kind, listed.key()).cloned() else {
            continue;
        };
        check_preconditions(&Subject::new(info, old.name()), &old, options)?;
        if !(is_namespace && namespace::is_protected(old.name())) {
            review(tx, info, &old)?;
            delete_one(tx, kind, &old, options)?;
        }
    }
    Ok(())
}

/// Waits until admission outside of the engine has reviewed a delete.
fn review(tx: &Transaction<'_>, info: &KindInfo, old: &Arc<Object>) -> Result<(), Error> {
    let Some(reviews) = tx.reviews() else {
        return Ok(());
    };
    let (_, view) = tx.kinds().resolve(info)?;
    reviews.delete(view, old, tx.shown(view, old)?)
}

/// Rejects contradictory options.
pub(crate) fn check_options(options: &DeleteOptions) -> Result<(), Error> {
    match (options.orphan_dependents, options.propagation) {
        (Some(_), Some(policy)) => Err(options_invalid(Cause::invalid(
            "propagationPolicy",
            policy.as_str(),
            "orphanDependents and deletionPropagation cannot be both set",
        ))),
        _ => Ok(()),
    }
}

pub(super) fn check_preconditions(
    subject: &Subject,
    old: &Object,
    options: &DeleteOptions,
) -> Result<(), Error> {
    // Kubernetes names the kind here, not the resource.
    let conflict = |reason| {
        Err(Error::Conflict {
            subject: Subject {
                resource: subject.kind.clone(),
                ..subject.clone()
            },
            reason,
        })
    };
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != old.uid()) {
        return conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            old.uid()
        ));
    }
    let current = old.revision().to_string();
    if let Some(version) = options
        .version
        .as_deref()
        .filter(|version| *version != current)
    {
        return conflict(format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({current}). The object might have been modified"
        ));
    }
    Ok(())
}

pub(super) fn delete_one(
    tx: &mut Transaction<'_>,
    kind: KindId,
    old: &Arc<Object>,
    options: &DeleteOptions,
) -> Result<Deleted, Error> {
    let before = old.map();
    let mut object = before.clone();
    let lifecycle = tx.rules(kind).lifecycle;
    let is_namespace = lifecycle == Lifecycle::Namespace;
    if lifecycle == Lifecycle::Definition
        && json::at(&before, "metadata.deletionTimestamp").is_none()
    {
        custom::mark_for_deletion(&mut object, tx.now);
        return Ok(Deleted::Pending(tx.put(kind, &object)?));
    }
    let grace = begin_grace(lifecycle, &mut object, tx.now, options);
    if grace == Grace::Pending {
        // As in Kubernetes, the options no longer change the finalizers.
        return Ok(Deleted::Pending(old.clone()));
    }
    set_finalizers(&mut object, tx.rules(kind), options);
    let waits = json::at(&object, "metadata.finalizers").is_some()
        || (is_namespace && json::at(&object, "spec.finalizers").is_some());
    if waits && grace == Grace::None {
        mark_terminating(&mut object, tx.now);
        if is_namespace {
            json::child(&mut object, "metadata").remove("deletionGracePeriodSeconds");
        }
    }
    if waits || matches!(grace, Grace::Seconds(seconds) if seconds > 0) {
        if is_namespace {
            json::child(&mut object, "status").insert("phase".into(), "Terminating".into());
        }
        let object = if object == before {
            old.clone()
        } else {
            tx.put(kind, &object)?
        };
        return Ok(Deleted::Pending(object));
    }
    if grace == Grace::Seconds(0) {
        // Kubernetes updates the object and then deletes it, so a watch first sees the end of the
        // grace period.
        let last = tx.put(kind, &object)?;
        return Ok(Deleted::Gone(tx.remove(kind, &last)));
    }
    Ok(Deleted::Gone(tx.remove(kind, old)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grace {
    /// The object has no grace period, or it is over.
    None,
    /// The grace period was started, or shortened, to this many seconds.
    Seconds(i64),
    /// An earlier grace period continues.
    Pending,
}

/// Starts a pod's grace period or shortens a running one.
fn begin_grace(
    lifecycle: Lifecycle,
    object: &mut JsonObject,
    now: Timestamp,
    options: &DeleteOptions,
) -> Grace {
    let deleting = json::at(object, "metadata.deletionTimestamp").is_some();
    let current = json::number(object, "metadata.deletionGracePeriodSeconds");
    if deleting {
        let Some(current) = current.map(not_negative) else {
            return Grace::None;
        };
        let due = time::parse(json::text(object, "metadata.deletionTimestamp")).unwrap_or(now);
        return match options.grace_seconds.map(not_negative) {
            Some(seconds) if seconds < current => {
                let shorter = SignedDuration::from_secs(current.saturating_sub(seconds));
                let due = due.checked_sub(shorter).ok();
                let (due, seconds) = match due.filter(|due| *due >= Timestamp::UNIX_EPOCH) {
                    Some(due) if due >= now => (due, seconds),
                    // The end is never in the past: the node still has a second to end the pod.
                    Some(_) => (now, seconds.min(1)),
                    // With a grace period that overflows, the end cannot be calculated.
                    None => (after(now, seconds), seconds),
                };
                set_grace(object, due, seconds);
                Grace::Seconds(seconds)
            }
            _ if current == 0 => Grace::None,
            _ => Grace::Pending,
        };
    }
    if lifecycle != Lifecycle::GracePeriod {
        return Grace::None;
    }
    let finished = matches!(json::text(object, "status.phase"), "Succeeded" | "Failed");
    let seconds = if finished || json::text(object, "spec.nodeName").is_empty() {
        0
    } else {
        let own = || json::number(object, "spec.terminationGracePeriodSeconds").unwrap_or(30);
        not_negative(options.grace_seconds.unwrap_or_else(own))
    };
    bump_generation(object);
    set_grace(object, after(now, seconds), seconds);
    Grace::Seconds(seconds)
}

/// Replaces a negative grace period by one second.
fn not_negative(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// Adds seconds to a time, saturating at the latest possible time.
fn after(now: Timestamp, seconds: i64) -> Timestamp {
    now.saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX)
}

fn set_grace(object: &mut JsonObject, due: Timestamp, seconds: i64) {
    let metadata = json::child(object, "metadata");
    metadata.insert("deletionTimestamp".into(), time::seconds(due).into());
    metadata.insert("deletionGracePeriodSeconds".into(), seconds.into());
}

/// Marks an object whose removal waits only for its finalizers.
fn mark_terminating(object: &mut JsonObject, now: Timestamp) {
    if json::at(object, "metadata.deletionTimestamp").is_none() {
        bump_generation(object);
        json::child(object, "metadata")
            .insert("deletionTimestamp".into(), time::seconds(now).into());
    }
    json::child(object, "metadata").insert("deletionGracePeriodSeconds".into(), 0.into());
}

fn bump_generation(object: &mut JsonObject) {
    if let Some(generation) = json::number(object, "metadata.generation").filter(|g| *g > 0) {
        json::child(object, "metadata")
            .insert("generation".into(), generation.saturating_add(1).into());
    }
}

/// Sets the finalizers that tell the garbage collector how to treat dependents.
fn set_finalizers(object: &mut JsonObject, rules: &KindRules, options: &DeleteOptions) {
    let old: Vec<String> = json::at(object, "metadata.finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let has = |name: &str| old.iter().any(|finalizer| finalizer == name);
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation) {
        (Some(orphan), _) => (orphan, false),
        (None, Some(policy)) => (
            policy == Propagation::Orphan,
            policy == Propagation::Foreground,
        ),
        (None, None) if has(ORPHAN) => (true, false),
        (None, None) if has(FOREGROUND) => (false, true),
        (None, None) => (rules.orphan_by_default, false),
    };
    let mut new: Vec<Value> = old
        .iter()
        .filter(|name| *name != ORPHAN && *name != FOREGROUND)
        .map(|name| name.as_str().into())
        .collect();
    if orphan {
        new.push(ORPHAN.into());
    } else if foreground {
        new.push(FOREGROUND.into());
    }
    let metadata = json::child(object, "metadata");
    if new.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), Value::Array(new));
    }
}
