//! Server-side apply as a write. It creates the object if it does not exist.

use longshore_builtin::json;
use longshore_model::{CauseList, Gvk, MAX_PROBLEM_BYTES, PatchKind, StatusCause, shorten, time};
use serde_json::Value;

use super::{
    Transaction, admission, create,
    ownership::{Author, with_scope},
    replace,
};
use crate::{
    Create, Error, FieldValidation, Patch, Subject, Subresource, Written,
    decode::{Decoded, json_type_name},
    managed::{self, Applied, Applier, ApplyError, Conflict},
    object,
};

/// Applies a configuration.
pub(super) fn apply(tx: &mut Transaction<'_>, request: Patch) -> Result<Written, Error> {
    let (kind, view) = tx.kinds().resolve(&request.target.kind)?;
    let view = view.clone();
    let info = view.info.clone();
    let mut config = match request.body {
        Value::Object(config) => config,
        Value::Null => json::Object::new(),
        other => {
            return Err(Error::BadRequest(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json_type_name(&other)
            )));
        }
    };
    let sent = Gvk::from_api_version(
        json::text(&config, "apiVersion"),
        json::text(&config, "kind"),
    );
    if sent != info.gvk {
        return Err(Error::BadRequest(format!(
            "invalid object type: {}",
            format_kind(&sent)
        )));
    }
    if let Some(Value::Object(metadata)) = config.get_mut("metadata")
        && !matches!(metadata.remove("managedFields"), None | Some(Value::Null))
    {
        return Err(Error::BadRequest(
            "metadata.managedFields must be nil".into(),
        ));
    }
    let (namespace, name) = (request.target.namespace.as_deref(), &*request.target.name);
    let subject = Subject::new(&info, name);
    let old = tx.get(kind, &object::key(namespace, name)).cloned();
    if old.is_none() && request.subresource != Subresource::None {
        return Err(Error::NotFound(subject));
    }
    let before = match &old {
        Some(old) => Some(tx.before(&view, old)?),
        None => None,
    };
    let shown_before = before.clone().map(|before| view.convert(before));
    let entries = managed::stored(old.as_ref().map_or("", |old| old.managed()));
    let now = time::seconds(tx.now);
    let applier = Applier {
        name: request.options.field_manager.as_deref().unwrap_or_default(),
        force: request.options.force,
        now: &now,
    };
    let entry = tx.kinds().entry(kind);
    let applied = with_scope(entry, &view, request.subresource, |scope| {
        managed::apply(scope, shown_before.as_ref(), entries, &config, applier)
    });
    let Applied { object, entries } = applied.map_err(|refusal| match refusal {
        ApplyError::Malformed(problem) => Error::Untyped(format!(
            "failed to create typed patch object ({}/{}; {}): {problem}",
            json::text(&config, "metadata.namespace"),
            json::text(&config, "metadata.name"),
            format_kind(&info.gvk),
        )),
        ApplyError::Conflicts(conflicts) => conflict(&conflicts),
    })?;
    let object = Value::Object(object);
    let Decoded {
        object: mut new, ..
    } = view
        .decode(object, FieldValidation::Ignore)
        .map_err(|problem| problem.of_patch(PatchKind::Apply, &Value::Object(config.clone())))?;
    let author = Author::Applied(entries);
    let (Some(old), Some(before)) = (old, before) else {
        if let Some(refusal) = request.options.create_refusal {
            return Err(*refusal);
        }
        let given = json::text(&new, "metadata.name");
        if given.is_empty() {
            return Err(replace::missing_name(name));
        }
        replace::check_name_and_namespace(&info, namespace, name, &mut new)?;
        let metadata = json::child(&mut new, "metadata");
        let uid = json::text(metadata, "uid");
        if !uid.is_empty() {
            return Err(Error::Conflict {
                subject,
                reason: format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                ),
            });
        }
        metadata.remove("resourceVersion");
        let request = Create {
            kind: info.clone(),
            namespace: namespace.map(str::to_owned),
            object: Value::Object(new),
            options: request.options,
        };
        let reviews = tx.reviews();
        let reviews = reviews.as_deref();
        let draft = create::draft(tx.state(), tx.ids(), request, Some(author), reviews)?;
        return create::create(tx, draft);
    };
    let mut new = view.to_stored_form(new);
    replace::check_name_and_namespace(&info, namespace, name, &mut new)?;
    let write_target = replace::WriteTarget {
        kind,
        view: &view,
        subresource: request.subresource,
    };
    let object = replace::replace(tx, write_target, &old, before, new, author)?;
    let warning = admission::update_warning(tx, kind, (&old, &object), request.subresource);
    Ok(Written {
        object,
        created: false,
        warnings: tx.with_warnings(warning.into_iter().collect()),
    })
}

/// Formats a kind as Kubernetes does: `apps/v1, Kind=Deployment`.
fn format_kind(gvk: &Gvk) -> String {
    format!("{}/{}, Kind={}", gvk.group, gvk.version, gvk.kind)
}

/// Reports the conflicting fields by manager.
fn conflict(conflicts: &[Conflict]) -> Error {
    let fields: Vec<(String, Vec<String>)> = conflicts
        .iter()
        .map(|conflict| (conflict.manager.to_string(), conflict.fields.paths()))
        .collect();
    let count: usize = fields.iter().map(|(_, paths)| paths.len()).sum();
    let causes = fields
        .iter()
        .flat_map(|(manager, paths)| paths.iter().map(move |path| (manager, path)))
        .map(|(manager, path)| StatusCause {
            reason: "FieldManagerConflict".into(),
            message: format!("conflict with {manager}"),
            field: path.clone(),
        })
        .collect::<CauseList>()
        .into_vec();
    let mut message = match causes.as_slice() {
        [only] => format!(
            "Apply failed with 1 conflict: {}: {}",
            only.message, only.field
        ),
        _ => {
            let lines: Vec<_> = fields
                .iter()
                .map(|(manager, paths)| {
                    format!("conflicts with {manager}:\n- {}", paths.join("\n- "))
                })
                .collect();
            format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
        }
    };
    shorten(&mut message, MAX_PROBLEM_BYTES);
    Error::ApplyConflict { message, causes }
}
