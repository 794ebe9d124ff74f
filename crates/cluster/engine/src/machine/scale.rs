//! Writes to `/scale`, which change only the desired number of replicas.

use std::sync::Arc;

use longshore_builtin::{PLAIN, cause::Cause, json};
use serde_json::Value;

use super::{Reviews, Transaction, apply, ownership::Author, replace, reviews};
use crate::{
    Error, Object, Patch, Subject, Subresource, Update, Written, custom::ScalePaths,
    decode::Decoded, kinds::KindId, object, patch as patches, rules::ViewRules, view::View,
};

/// The kind of the `/scale` subresource: `Scale` of autoscaling/v1.
#[must_use]
pub fn scale_kind() -> Arc<longshore_model::KindInfo> {
    Arc::new(scale_info())
}

/// The view of the kind `Scale`.
pub(crate) fn scale_view() -> View {
    View::stored(scale_kind(), ViewRules::from(&PLAIN))
}

fn scale_info() -> longshore_model::KindInfo {
    longshore_model::KindInfo {
        gvk: longshore_model::Gvk {
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
        },
        plural: "scales".into(),
        singular: "scale".into(),
        short_names: Default::default(),
        categories: Default::default(),
        scope: longshore_model::Scope::Namespaced,
        subresources: Default::default(),
        list_kind: None,
    }
}

/// Returns the `Scale` of an object, encoded as an object.
pub(crate) fn of(view: &View, object: &Arc<Object>) -> Result<Arc<Object>, Error> {
    let paths = paths(view, object.name())?;
    let shown = view.present(object).map();
    let scale = paths.scale(object, &shown).map_err(Error::Internal)?;
    let missing = json::at(&shown, paths.spec_path().trim_start_matches('.')).is_none();
    if missing && view.custom_kind().is_some() {
        return Err(Error::Internal(format!(
            "the spec replicas field {:?} does not exist",
            paths.spec_path()
        )));
    }
    Ok(as_object(object, scale))
}

fn as_object(object: &Object, scale: Value) -> Arc<Object> {
    let scale = match scale {
        Value::Object(scale) => scale,
        _ => json::Object::new(),
    };
    Arc::new(object.with_unmanaged_value(&scale))
}

fn paths(view: &View, name: &str) -> Result<ScalePaths, Error> {
    let is_converted = view
        .conversion()
        .is_some_and(|conversion| conversion.stored_as != view.info.api_version());
    if is_converted {
        return Err(view.not_converted());
    }
    view.scale()
        .ok_or_else(|| Error::NotFound(Subject::new(&view.info, name).subresource("scale")))
}

/// Replaces the `Scale` of an object.
pub(super) fn put(
    tx: &mut Transaction<'_>,
    kind: KindId,
    view: &View,
    request: &Update,
    decoded: Decoded,
) -> Result<Written, Error> {
    let target = &request.target;
    let old = tx
        .get(
            kind,
            &object::key(target.namespace.as_deref(), &target.name),
        )
        .cloned()
        .ok_or_else(|| Error::NotFound(Subject::new(&view.info, &target.name)))?;
    let author = Author::new(&request.options, None);
    let object = store(tx, (kind, view), &old, &decoded.object, author)?;
    Ok(Written {
        object,
        created: false,
        warnings: decoded.warnings,
    })
}

/// Patches the `Scale` of an object.
pub(super) fn patch(
    tx: &mut Transaction<'_>,
    kind: KindId,
    view: &View,
    old: &Arc<Object>,
    request: &Patch,
) -> Result<Written, Error> {
    let shown = view.present(old).map();
    let scale = paths(view, old.name())?
        .scale(old, &shown)
        .map_err(Error::Internal)?;
    let Value::Object(scale) = scale else {
        return Err(Error::Internal("a Scale is no object".into()));
    };
    let view_of_scale = scale_view();
    let patched = patches::apply(
        &view_of_scale.info,
        request.kind,
        scale,
        &request.body,
        request.options.patch_text.as_deref(),
    )?;
    let Decoded {
        object, warnings, ..
    } = view_of_scale
        .decode(patched, request.options.field_validation)
        .map_err(|problem| problem.of_patch(request.kind, &request.body))?;
    let author = Author::new(&request.options, None);
    let object = store(tx, (kind, view), old, &object, author)?;
    Ok(Written {
        object,
        created: false,
        warnings,
    })
}

/// Applies a `Scale`, as if its field `replicas` were applied to the object.
pub(super) fn apply(
    tx: &mut Transaction<'_>,
    view: &View,
    mut request: Patch,
) -> Result<Written, Error> {
    let paths = paths(view, &request.target.name)?;
    let sent = &request.body;
    if sent["apiVersion"] != "autoscaling/v1" || sent["kind"] != "Scale" {
        return Err(Error::BadRequest(format!(
            "invalid object type: {}, Kind={}",
            sent["apiVersion"].as_str().unwrap_or_default(),
            sent["kind"].as_str().unwrap_or_default()
        )));
    }
    let mut config = json::Object::new();
    config.insert("apiVersion".into(), view.info.api_version().into());
    config.insert("kind".into(), view.info.gvk.kind.as_ref().into());
    if let Some(metadata) = sent.get("metadata") {
        config.insert("metadata".into(), metadata.clone());
    }
    if let Some(replicas) = sent["spec"]["replicas"].as_i64() {
        paths.set(&mut config, replicas);
    }
    let target = &request.target;
    let key = object::key(target.namespace.as_deref(), &target.name);
    let old = tx.get(tx.kinds().id(&view.info)?, &key).cloned();
    let reviewed = tx.reviews().zip(old);
    if let Some((reviews, old)) = &reviewed
        && let Value::Object(mut scale) = shown_scale(&paths, view, old)?
    {
        if let Some(replicas) = sent["spec"]["replicas"].as_i64() {
            json::child(&mut scale, "spec").insert("replicas".into(), replicas.into());
        }
        let mutated = mutate(reviews, (&paths, view), old, scale)?;
        if let Some(replicas) = json::number(&mutated, "spec.replicas") {
            paths.set(&mut config, replicas);
        }
    }
    request.body = Value::Object(config);
    let written = apply::apply(tx, request)?;
    let scale = shown_scale(&paths, view, &written.object)?;
    if let Some((reviews, old)) = &reviewed {
        validate(reviews, (&paths, view), old, &scale)?;
    }
    Ok(Written {
        object: as_object(&written.object, scale),
        ..written
    })
}

/// The `Scale` of an object.
fn shown_scale(paths: &ScalePaths, view: &View, object: &Arc<Object>) -> Result<Value, Error> {
    let shown = view.present(object).map();
    paths.scale(object, &shown).map_err(Error::Internal)
}

/// Executes mutating admission outside of the engine on a `Scale`.
fn mutate(
    reviews: &Reviews,
    (paths, view): (&ScalePaths, &View),
    old: &Arc<Object>,
    mut scale: json::Object,
) -> Result<json::Object, Error> {
    let before = shown_scale(paths, view, old)?;
    let metadata = json::child(&mut scale, "metadata");
    for (field, value) in [("name", Some(old.name())), ("namespace", old.namespace())] {
        if let Some(value) = value {
            metadata.insert(field.into(), value.into());
        }
    }
    let info = scale_kind();
    let mutated = reviews.mutate((&info, Some(old)), scale, || Some(before))?;
    reviews::decode(&scale_view(), mutated)
}

/// Waits for validating admission of a `Scale`.
fn validate(
    reviews: &Reviews,
    (paths, view): (&ScalePaths, &View),
    old: &Arc<Object>,
    scale: &Value,
) -> Result<(), Error> {
    let before = shown_scale(paths, view, old)?;
    let scale = scale.as_object().cloned().unwrap_or_default();
    reviews.validate((&scale_kind(), Some(old)), || (scale, Some(before)))
}

fn subject(name: &str) -> Subject {
    Subject::new(&scale_info(), name)
}

fn store(
    tx: &mut Transaction<'_>,
    (kind, view): (KindId, &View),
    old: &Arc<Object>,
    scale: &json::Object,
    author: Author,
) -> Result<Arc<Object>, Error> {
    let paths = paths(view, old.name())?;
    let reviews = tx.reviews();
    let mutated = match &reviews {
        None => None,
        Some(reviews) => Some(mutate(reviews, (&paths, view), old, scale.clone())?),
    };
    let scale = mutated.as_ref().unwrap_or(scale);
    replace::check_preconditions(&Subject::new(&view.info, old.name()), old, scale)?;
    let custom = view.custom_kind().is_some();
    let replicas = match json::number(scale, "spec.replicas") {
        Some(replicas) => replicas,
        // For built-in kinds, Go's `Scale` type always has a number.
        None if !custom || json::at(scale, "spec").is_some() => 0,
        None => {
            return Err(Error::BadRequest(format!(
                "the spec replicas field {:?} cannot be empty",
                paths.spec_path()
            )));
        }
    };
    if replicas < 0 && !custom {
        let why = "must be greater than or equal to 0";
        return Err(Error::Invalid {
            subject: subject(old.name()),
            causes: vec![Cause::invalid("spec.replicas", replicas, why)],
        });
    }
    let before = tx.before(view, old)?;
    let mut new = view.convert(before.clone());
    paths.set(&mut new, replicas);
    let new = view.to_stored_form(new);
    let write_target = replace::WriteTarget {
        kind,
        view,
        subresource: Subresource::Scale,
    };
    let stored = replace::replace(tx, write_target, old, before, new, author)?;
    let scale = shown_scale(&paths, view, &stored)?;
    if let Some(reviews) = &reviews {
        validate(reviews, (&paths, view), old, &scale)?;
    }
    Ok(as_object(&stored, scale))
}
