//! Updates and patches: a new state is checked against the old one, and kept
//! when it differs.

use std::sync::Arc;

use longshore_model::{KindInfo, PatchKind, time};
use serde_json::Value;

use super::{Draftable, Transaction, apply, create, ownership::Author, scale};
use crate::{
    Error, Object, Patch, Subject, Subresource, Update, Written,
    cause::Cause,
    decode::{Decoded, complete},
    defaults, json,
    kinds::KindId,
    managed, object, patch as patches, validate,
    view::View,
};

/// Reads the object of an update, which is taken out of it.
pub(crate) fn decode_update(tx: &Transaction<'_>, request: &mut Update) -> Result<Decoded, Error> {
    let object = std::mem::take(&mut request.object);
    let validation = request.options.field_validation;
    let decoded = if request.subresource == Subresource::Scale {
        scale::scale_view().decode(object, validation)?
    } else {
        let (_, view) = tx.kinds().resolve(&request.target.kind)?;
        view.decode(object, validation)?
    };
    Ok(decoded)
}

/// An update whose object was read before the writer's turn.
#[derive(Debug, Clone)]
pub(crate) struct ReadUpdate {
    pub(crate) request: Update,
    pub(crate) decoded: Decoded,
    /// What it was read under; the kind may have another schema since.
    pub(crate) view: Arc<View>,
}

/// The writer's part of an update: its object under today's definition.
pub(crate) fn update_read(tx: &mut Transaction<'_>, read: ReadUpdate) -> Result<Written, Error> {
    let ReadUpdate {
        request,
        mut decoded,
        view,
    } = read;
    if view.custom_kind().is_some() && request.subresource != Subresource::Scale {
        let (_, current) = tx.kinds().resolve(&view.info)?;
        if !Arc::ptr_eq(&view, current) {
            decoded.object = current.shown(decoded.object);
        }
    }
    update(tx, request, decoded)
}

/// Replaces an object or its status by one that was read before.
pub(crate) fn update(
    tx: &mut Transaction<'_>,
    request: Update,
    decoded: Decoded,
) -> Result<Written, Error> {
    let (kind, view) = tx.kinds().resolve(&request.target.kind)?;
    let view = view.clone();
    let info = tx.kinds().entry(kind).info.clone();
    let (namespace, name) = (request.target.namespace.as_deref(), &*request.target.name);
    if request.subresource == Subresource::Scale {
        return scale::put(tx, kind, &view, &request, decoded);
    }
    let Decoded {
        object,
        managed,
        warnings,
    } = decoded;
    let author = Author::new(&request.options, managed);
    let mut new = view.stored_form(object);
    check_place(&info, namespace, name, &mut new)?;
    let Some(old) = tx.get(kind, &object::key(namespace, name)).cloned() else {
        if tx.facts(kind).create_on_update && request.subresource == Subresource::None {
            let metadata = json::child(&mut new, "metadata");
            metadata.remove("resourceVersion");
            metadata.remove("uid");
            let object = Value::Object(new);
            let mut written = create::create_here(tx, &info, namespace, object, author)?;
            written.warnings = warnings;
            return Ok(written);
        }
        return Err(Error::NotFound(Subject::new(&info, name)));
    };
    let subject = Subject::new(&info, name);
    if json::text(&new, "metadata.resourceVersion").is_empty()
        && !tx.facts(kind).unconditional_update
    {
        let cause = Cause::plain(
            "metadata.resourceVersion",
            "FieldValueInvalid",
            "Invalid value: 0: must be specified for an update".into(),
        );
        let subject = Subject {
            kind: subject.resource.clone(),
            ..subject
        };
        return Err(Error::Invalid {
            subject,
            causes: vec![cause],
        });
    }
    let before = old.map();
    let place = Place {
        kind,
        view: &view,
        subresource: request.subresource,
    };
    let object = replace(tx, place, &old, before, new, author)?;
    Ok(Written {
        object,
        created: false,
        warnings,
    })
}

/// Patches an object or its status. Nobody writes in between, so a patch that
/// names no version cannot conflict.
pub(crate) fn patch(tx: &mut Transaction<'_>, request: Patch) -> Result<Written, Error> {
    let (kind, view) = tx.kinds().resolve(&request.target.kind)?;
    let view = view.clone();
    match (request.kind, request.subresource) {
        (PatchKind::Apply, Subresource::Scale) => return scale::apply(tx, &view, request),
        (PatchKind::Apply, _) => return apply::apply(tx, request),
        _ => {}
    }
    let info = tx.kinds().entry(kind).info.clone();
    let (namespace, name) = (request.target.namespace.as_deref(), &*request.target.name);
    let old = tx
        .get(kind, &object::key(namespace, name))
        .cloned()
        .ok_or_else(|| Error::NotFound(Subject::new(&info, name)))?;
    let before = old.map();
    if request.subresource == Subresource::Scale {
        return scale::patch(tx, kind, &view, &old, &request);
    }
    let document = if patches::sees_managed_fields(request.kind, &request.body) {
        old.full_map()
    } else {
        before.clone()
    };
    let shown = view.shown(document);
    let patched = patches::apply(&view.info, request.kind, shown, &request.body)?;
    let Decoded {
        object,
        managed,
        warnings,
    } = view
        .decode(patched, request.options.field_validation)
        .map_err(|problem| problem.of_patch(request.kind, &request.body))?;
    let mut new = view.stored_form(object);
    if json::text(&new, "metadata.name").is_empty() {
        return Err(nameless(name));
    }
    check_place(&info, namespace, name, &mut new)?;
    let uid = json::text(&new, "metadata.uid");
    if !uid.is_empty() && uid != old.uid() {
        // In a patch it is no precondition, but a change that may not be.
        return Err(Error::Invalid {
            causes: vec![Cause::invalid("metadata.uid", uid, "field is immutable")],
            subject: Subject::new(&info, name),
        });
    }
    let author = Author::new(&request.options, managed);
    let place = Place {
        kind,
        view: &view,
        subresource: request.subresource,
    };
    let object = replace(tx, place, &old, before, new, author)?;
    Ok(Written {
        object,
        created: false,
        warnings,
    })
}

/// An object without a name, for a request about one that has a name.
pub(super) fn nameless(name: &str) -> Error {
    Error::BadRequest(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

/// The name and namespace must be those of the request, or absent.
pub(super) fn check_place(
    info: &KindInfo,
    namespace: Option<&str>,
    name: &str,
    object: &mut Draftable,
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

/// The uid and version that were sent, if any, must be the object's.
pub(super) fn check_preconditions(
    subject: &Subject,
    old: &Object,
    sent: &Draftable,
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

/// Which kind, in which version, and which part of an object a write is about.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) kind: KindId,
    pub(super) view: &'a View,
    pub(super) subresource: Subresource,
}

/// Brings a new state in line with the old one, checks it, and keeps it.
pub(super) fn replace(
    tx: &mut Transaction<'_>,
    place: Place<'_>,
    old: &Arc<Object>,
    before: Draftable,
    sent: Draftable,
    author: Author,
) -> Result<Arc<Object>, Error> {
    let Place { kind, view, .. } = place;
    let info = tx.kinds().entry(kind).info.clone();
    let subject = Subject::new(&info, old.name());
    check_preconditions(&subject, old, &sent)?;
    let new = match place.subresource {
        Subresource::Status | Subresource::Approval => {
            let approval = place.subresource == Subresource::Approval;
            let mut new = before.clone();
            json::copy(&sent, &mut new, "status");
            // Whatever is written is stored in the version of today.
            json::copy(&sent, &mut new, "apiVersion");
            if let Some(Value::Object(sent)) = sent.get("metadata") {
                let metadata = json::child(&mut new, "metadata");
                for field in tx.facts(kind).status_metadata {
                    json::copy(sent, metadata, field);
                }
            }
            if approval {
                defaults::on_approval(&before, &mut new, tx.now);
            } else {
                defaults::on_status(&info, &before, &mut new, tx.now);
            }
            complete(&info, &mut new);
            let causes = match view.custom_kind() {
                Some(kind) => kind.validate_status(&new),
                None => {
                    let mut causes = match approval {
                        true => validate::approval(&before, &new),
                        false => validate::status(&info, &before, &new),
                    };
                    causes.extend(validate::metadata(&info, &before, &new));
                    causes
                }
            };
            if !causes.is_empty() {
                return Err(Error::Invalid { subject, causes });
            }
            new
        }
        Subresource::None | Subresource::Scale | Subresource::Finalize => {
            let mut new = sent;
            if view.info.has_subresource("status") {
                json::copy(&before, &mut new, "status");
            }
            let mut causes = validate::deletion(&before, &new);
            keep_server_fields(&before, &mut new);
            if place.subresource != Subresource::Finalize {
                defaults::on_update(&info, &before, &mut new);
            }
            defaults::fill(&info, &mut new);
            defaults::settle(&info, Some(&before), &mut new);
            match (&*info.gvk.group, &*info.gvk.kind) {
                ("", "Service") => {
                    super::service::allocate(tx, kind, &info, &mut new, Some(&before))?;
                }
                ("scheduling.k8s.io", "PriorityClass") => {
                    super::priority::one_default(tx, &info, &new)?;
                }
                _ => {}
            }
            causes.extend(match place.subresource {
                Subresource::Finalize => validate::finalized(&info, &new),
                _ => validate::object(&info, &new),
            });
            // What is always there is there in the old state, too.
            complete(&info, &mut new);
            causes.extend(validate::change(&info, &before, &new));
            causes.extend(view.validate(Some(&before), &new));
            let causes = view.in_own_words(causes);
            if !causes.is_empty() {
                return Err(Error::Invalid { subject, causes });
            }
            if tx.facts(kind).generation.counts(&before, &new) {
                let generation = json::number(&before, "metadata.generation").unwrap_or_default();
                json::child(&mut new, "metadata")
                    .insert("generation".into(), generation.saturating_add(1).into());
            }
            new
        }
    };
    record(tx, place, old, &before, &new, author)
}

/// Keeps a new state, with who manages it now, if it differs from the old one.
fn record(
    tx: &mut Transaction<'_>,
    place: Place<'_>,
    old: &Arc<Object>,
    before: &Draftable,
    new: &Draftable,
    author: Author,
) -> Result<Arc<Object>, Error> {
    if before == new && author.is_plain() {
        return Ok(old.clone());
    }
    let now = time::seconds(tx.now);
    let was_applied = matches!(author, Author::Applied(_));
    let (kind, view) = (place.kind, place.view);
    let entry = tx.kinds().entry(kind);
    let entries = view.with_shown(before, |before| {
        view.with_shown(new, |new| {
            author.of_update((entry, view, place.subresource), old, (before, new), &now)
        })
    });
    if before == new && managed::is_stored(&entries, old.managed()) {
        return Ok(old.clone());
    }
    let managed = managed::text(entries);
    let kept = view.kept_form(new);
    let new = kept.as_ref().unwrap_or(new);
    match keep(tx, kind, old, new, &managed) {
        // Managed fields are the first to go where there is no place.
        Err(Error::ObjectTooLarge) if !was_applied => keep(tx, kind, old, new, ""),
        result => result,
    }
}

/// What only the server may change stays as it was.
fn keep_server_fields(before: &Draftable, new: &mut Draftable) {
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

/// Keeps a new state: nothing happens when it is the old one; an object whose
/// deletion waited for its last finalizer goes.
pub(super) fn store(
    tx: &mut Transaction<'_>,
    kind: KindId,
    old: &Arc<Object>,
    before: &Draftable,
    new: &Draftable,
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
    new: &Draftable,
    managed: &str,
) -> Result<Arc<Object>, Error> {
    if is_finished(new) {
        let revision = tx.state().revision + 1;
        let last = Object::encode(new, managed, tx.facts(kind), revision, Some(old));
        tx.remove(kind, old);
        return Ok(Arc::new(last));
    }
    tx.put_managed(kind, new, Some(managed))
}

/// Whether a deletion that has begun has nothing left to wait for.
fn is_finished(object: &Draftable) -> bool {
    let has = |path| {
        json::at(object, path)
            .and_then(Value::as_array)
            .is_some_and(|l| !l.is_empty())
    };
    let is_namespace = json::text(object, "kind") == "Namespace";
    json::at(object, "metadata.deletionTimestamp").is_some()
        && json::number(object, "metadata.deletionGracePeriodSeconds").unwrap_or_default() == 0
        && !has("metadata.finalizers")
        && !(is_namespace && has("spec.finalizers"))
}
