//! Updates and patches, of an object or of one of its subresources.

use std::sync::Arc;

use longshore_model::PatchKind;
use serde_json::Value;

use super::{Transaction, apply, create, ownership::Author, replace, scale};
use crate::{
    Error, Patch, Subject, Subresource, Update, Written, cause::Cause, decode::Decoded, json,
    object, patch as patches, view::View,
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
    replace::check_place(&info, namespace, name, &mut new)?;
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
    let place = replace::Place {
        kind,
        view: &view,
        subresource: request.subresource,
    };
    let object = replace::replace(tx, place, &old, before, new, author)?;
    Ok(Written {
        object,
        created: false,
        warnings,
    })
}

/// Patches an object or its status. No write comes in between, so a patch that
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
        return Err(replace::nameless(name));
    }
    replace::check_place(&info, namespace, name, &mut new)?;
    let uid = json::text(&new, "metadata.uid");
    if !uid.is_empty() && uid != old.uid() {
        // In a patch it is no precondition, but a change that may not be.
        return Err(Error::Invalid {
            causes: vec![Cause::invalid("metadata.uid", uid, "field is immutable")],
            subject: Subject::new(&info, name),
        });
    }
    let author = Author::new(&request.options, managed);
    let place = replace::Place {
        kind,
        view: &view,
        subresource: request.subresource,
    };
    let object = replace::replace(tx, place, &old, before, new, author)?;
    Ok(Written {
        object,
        created: false,
        warnings,
    })
}
