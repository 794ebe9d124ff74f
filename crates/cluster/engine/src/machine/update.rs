//! Updates and patches of objects and their subresources.

use std::sync::Arc;

use longshore_builtin::{cause::Cause, json};
use longshore_model::PatchKind;
use serde_json::Value;

use super::{Transaction, admission, apply, create, ownership::Author, replace, reviews, scale};
use crate::{
    Error, Patch, Subject, Subresource, Update, Written, decode::Decoded, object, patch as patches,
    view::View,
};

/// Decodes the object of an update and takes it out of the request.
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

/// An update whose object was decoded before the writer's turn.
#[derive(Debug, Clone)]
pub(crate) struct DecodedUpdate {
    pub(crate) request: Update,
    pub(crate) decoded: Decoded,
    /// The view used for decoding. The schema of the kind may have changed since.
    pub(crate) view: Arc<View>,
}

/// The writer's part of an update: decodes the object again if the definition
/// has changed.
pub(crate) fn update_decoded(
    tx: &mut Transaction<'_>,
    read: DecodedUpdate,
) -> Result<Written, Error> {
    let DecodedUpdate {
        request,
        mut decoded,
        view,
    } = read;
    if view.custom_kind().is_some() && request.subresource != Subresource::Scale {
        let (_, current) = tx.kinds().resolve(&view.info)?;
        if !Arc::ptr_eq(&view, current) {
            decoded.object = current.convert(decoded.object);
        }
    }
    update(tx, request, decoded)
}

/// Replaces an object or its status by a decoded object.
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
        mut warnings,
    } = decoded;
    let author = Author::new(&request.options, managed);
    let mut new = view.to_stored_form(object);
    replace::check_name_and_namespace(&info, namespace, name, &mut new)?;
    let Some(old) = tx.get(kind, &object::key(namespace, name)).cloned() else {
        if tx.rules(kind).create_on_update && request.subresource == Subresource::None {
            if let Some(refusal) = request.options.create_refusal {
                return Err(*refusal);
            }
            let metadata = json::child(&mut new, "metadata");
            metadata.remove("resourceVersion");
            metadata.remove("uid");
            let object = Value::Object(new);
            let mut written = create::create_in_transaction(tx, &info, namespace, object, author)?;
            written.warnings = warnings;
            return Ok(written);
        }
        return Err(Error::NotFound(Subject::new(&info, name)));
    };
    let subject = Subject::new(&info, name);
    if json::text(&new, "metadata.resourceVersion").is_empty()
        && !tx.rules(kind).unconditional_update
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
    let before = tx.before(&view, &old)?;
    let write_target = replace::WriteTarget {
        kind,
        view: &view,
        subresource: request.subresource,
    };
    let object = replace::replace(tx, write_target, &old, before, new, author)?;
    let warning = admission::update_warning(tx, kind, (&old, &object), request.subresource);
    warnings.extend(warning);
    Ok(Written {
        object,
        created: false,
        warnings: tx.with_warnings(warnings),
    })
}

/// Patches an object or its status. No write can intervene, so a patch without
/// a resource version cannot conflict.
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
    let before = tx.before(&view, &old)?;
    if request.subresource == Subresource::Scale {
        return scale::patch(tx, kind, &view, &old, &request);
    }
    let document = if patches::sees_managed_fields(request.kind, &request.body) {
        reviews::with_managed(before.clone(), old.managed())
    } else {
        before.clone()
    };
    let shown = view.convert(document);
    let patched = patches::apply(
        &view.info,
        request.kind,
        shown,
        &request.body,
        request.options.patch_text.as_deref(),
    )?;
    let Decoded {
        object,
        managed,
        mut warnings,
    } = view
        .decode(patched, request.options.field_validation)
        .map_err(|problem| problem.of_patch(request.kind, &request.body))?;
    let mut new = view.to_stored_form(object);
    if json::text(&new, "metadata.name").is_empty() {
        return Err(replace::missing_name(name));
    }
    replace::check_name_and_namespace(&info, namespace, name, &mut new)?;
    let uid = json::text(&new, "metadata.uid");
    if !uid.is_empty() && uid != old.uid() {
        // In a patch, another uid is not a failed precondition but an invalid change.
        return Err(Error::Invalid {
            causes: vec![Cause::invalid("metadata.uid", uid, "field is immutable")],
            subject: Subject::new(&info, name),
        });
    }
    let author = Author::new(&request.options, managed);
    let write_target = replace::WriteTarget {
        kind,
        view: &view,
        subresource: request.subresource,
    };
    let object = replace::replace(tx, write_target, &old, before, new, author)?;
    let warning = admission::update_warning(tx, kind, (&old, &object), request.subresource);
    warnings.extend(warning);
    Ok(Written {
        object,
        created: false,
        warnings: tx.with_warnings(warnings),
    })
}
