//! POST, PUT and PATCH: create, update, patch, status, finalize and binding.

use std::sync::Arc;

use http::{Response, StatusCode};
use longshore_builtin::find_served;
use longshore_engine::{
    Bind, Create, Error, Patch, Subresource, Target, Update, Written, scale_kind,
};
use longshore_model::{KindInfo, PatchKind, Status};
use longshore_schema::parse;
use serde_json::Value;

use super::{
    admission::{self, Place},
    certificates, object_shape, plain_shape,
};
use crate::{
    authorization::Attributes,
    body::Body,
    call::Call,
    duplicate_fields::DuplicateFields,
    input::{self, RequestBody},
    limits,
    negotiate::{Encoding, Negotiated},
    offload::offload,
    params, policy_types,
    present::Presenter,
    reply::{self, Reply},
    status_error::StatusError,
    webhooks::Operation,
    yaml,
};

pub(super) async fn create(
    call: Call,
    info: Arc<KindInfo>,
    namespace: Option<String>,
    body: RequestBody,
) -> Reply {
    let wanted = object_shape(&call)?;
    let presenter = Presenter::new(&call, info.clone(), wanted.shape)?;
    let options = params::write_options(&call.query, "CreateOptions", None, call.user_agent())?;
    let (mut object, duplicate_fields) = input::object(&call.headers, body, &info.gvk.kind).await?;
    check_kind(&call, &mut object, &info)?;
    let duplicate_fields = duplicate_fields.in_object(&info, &options, &object)?;
    set_requester(&call, &info, &mut object);
    let place = Place {
        kind: &info,
        namespace: namespace.as_deref(),
        name: object["metadata"]["name"].as_str().unwrap_or_default(),
        subresource: "",
    };
    let admission = admission::of(&call, &[Operation::Create], place, || {
        admission::write_options(&call.query, options.dry_run)
    });
    let create = Create {
        kind: info.clone(),
        namespace,
        object,
        options,
    };
    let engine = &call.shared.engine;
    let mut written = match &admission {
        Some(admission) => engine.create_reviewed(create, admission).await?,
        None => engine.create(create).await?,
    };
    policy_types::check_later(engine, &info, &written.object);
    call.present(&info, &mut written.object).await?;
    written.warnings.splice(0..0, duplicate_fields);
    written.warnings.extend(idle_kind_warning(&call, &info));
    answer(StatusCode::CREATED, wanted, &presenter, &written)
}

/// Returns the error if an update or patch would create the object and the user may not create it.
fn create_refusal(call: &Call, target: &Target) -> Option<Box<Error>> {
    let authorizer = &call.shared.authorizer;
    let create = Attributes {
        verb: "create".to_owned(),
        group: target.kind.gvk.group.to_string(),
        resource: target.kind.plural.to_string(),
        namespace: target.namespace.clone().unwrap_or_default(),
        name: target.name.clone(),
        ..Attributes::default()
    };
    let refusal = authorizer.check(&call.user, &create).err();
    refusal.map(|refusal| Box::new(refusal.into()))
}

/// Sets the requester of a new certificate request; values in the body are
/// ignored.
fn set_requester(call: &Call, kind: &KindInfo, object: &mut Value) {
    let is_request = certificates::is_request(kind);
    let spec = object.get_mut("spec").filter(|_| is_request);
    if let (Some(Value::Object(spec)), Value::Object(user)) = (spec, call.user.info()) {
        for field in ["username", "uid", "groups", "extra"] {
            spec.remove(field);
        }
        spec.extend(user);
    }
}

/// The part of an object that admission reviews.
fn place(target: &Target, subresource: Subresource) -> Place<'_> {
    Place {
        kind: &target.kind,
        namespace: target.namespace.as_deref(),
        name: &target.name,
        subresource: match subresource {
            Subresource::None => "",
            Subresource::Status => "status",
            Subresource::Scale => "scale",
            Subresource::Finalize => "finalize",
            Subresource::Approval => "approval",
            Subresource::EphemeralContainers => "ephemeralcontainers",
            Subresource::Resize => "resize",
        },
    }
}

/// Returns the kind of the request and response body: `scale` has a separate kind.
fn kind_of(target: &Target, subresource: Subresource) -> Arc<KindInfo> {
    match subresource {
        Subresource::Scale => scale_kind(),
        _ => target.kind.clone(),
    }
}

/// Checks the kind of an object. Objects of custom kinds must specify it.
fn check_kind(call: &Call, object: &mut Value, kind: &Arc<KindInfo>) -> Result<(), StatusError> {
    let served = call.custom.as_ref().filter(|served| served.info == *kind);
    if served.is_some_and(|served| served.custom.is_some()) {
        input::check_custom_kind(object, kind)
    } else {
        input::check_kind(object, kind)
    }
}

/// Returns the warning for an object of a kind that no controller of this
/// cluster handles.
fn idle_kind_warning(call: &Call, kind: &KindInfo) -> Option<String> {
    let warns = call.shared.warn_unhandled_kinds && !call.sheltered;
    let behaviour = find_served(&kind.gvk)?.behaviour;
    warns.then(|| behaviour.warning(kind)).flatten()
}

pub(super) async fn update(
    call: Call,
    target: Target,
    subresource: Subresource,
    body: RequestBody,
) -> Reply {
    let wanted = object_shape(&call)?;
    let kind = kind_of(&target, subresource);
    let presenter = Presenter::new(&call, kind.clone(), wanted.shape)?;
    let mut options = params::write_options(&call.query, "UpdateOptions", None, call.user_agent())?;
    let (mut object, duplicate_fields) = input::object(&call.headers, body, &kind.gvk.kind).await?;
    check_kind(&call, &mut object, &kind)?;
    input::check_name(&object, &target.name, target.namespace.as_deref())?;
    let duplicate_fields = duplicate_fields.in_object(&kind, &options, &object)?;
    if find_served(&target.kind.gvk).is_some_and(|rules| rules.create_on_update) {
        options.create_refusal = create_refusal(&call, &target);
    }
    let operations = [Operation::Create, Operation::Update];
    let admission = admission::of(&call, &operations, place(&target, subresource), || {
        admission::write_options(&call.query, options.dry_run)
    });
    let presented_kind = target.kind.clone();
    let update = Update {
        target,
        subresource,
        object,
        options,
    };
    let engine = &call.shared.engine;
    let mut written = match &admission {
        Some(admission) => engine.update_reviewed(update, admission).await?,
        None => engine.update(update).await?,
    };
    policy_types::check_later(&call.shared.engine, &presented_kind, &written.object);
    if subresource != Subresource::Scale {
        call.present(&presented_kind, &mut written.object).await?;
    }
    written.warnings.splice(0..0, duplicate_fields);
    answer(code(&written), wanted, &presenter, &written)
}

pub(super) async fn patch(
    call: Call,
    target: Target,
    subresource: Subresource,
    body: RequestBody,
) -> Reply {
    let kind = PatchKind::from_media_type(&input::media_type(&call.headers)).ok_or_else(|| {
        StatusError::unsupported_media_type(&PatchKind::ALL.map(PatchKind::media_type))
    })?;
    let wanted = object_shape(&call)?;
    let presenter = Presenter::new(&call, kind_of(&target, subresource), wanted.shape)?;
    let mut options =
        params::write_options(&call.query, "PatchOptions", Some(kind), call.user_agent())?;
    let bytes = input::read(body).await?;
    let (body, duplicate_fields) = if bytes.len() < limits::PARSE_OFFLOAD {
        read_patch(kind, &bytes)?
    } else {
        let bytes = bytes.clone();
        offload(move || read_patch(kind, &bytes)).await??
    };
    let duplicate_fields = duplicate_fields.in_patch(&bytes, &options)?;
    let mut body = body;
    if kind == PatchKind::Apply && subresource == Subresource::None {
        set_requester(&call, &target.kind, &mut body);
    }
    if kind == PatchKind::Apply {
        options.create_refusal = create_refusal(&call, &target);
    }
    if kind == PatchKind::Json {
        options.patch_text = str::from_utf8(&bytes).ok().map(Arc::from);
    }
    let idle_kind_warning = idle_kind_warning(&call, &target.kind);
    let operations = [Operation::Create, Operation::Update];
    let admission = admission::of(&call, &operations, place(&target, subresource), || {
        admission::write_options(&call.query, options.dry_run)
    });
    let presented_kind = target.kind.clone();
    let patch = Patch {
        target,
        subresource,
        kind,
        body,
        options,
    };
    let engine = &call.shared.engine;
    let mut written = match &admission {
        Some(admission) => engine.patch_reviewed(patch, admission).await?,
        None => engine.patch(patch).await?,
    };
    policy_types::check_later(&call.shared.engine, &presented_kind, &written.object);
    if subresource != Subresource::Scale {
        call.present(&presented_kind, &mut written.object).await?;
    }
    written.warnings.splice(0..0, duplicate_fields);
    if written.created {
        written.warnings.extend(idle_kind_warning);
    }
    answer(code(&written), wanted, &presenter, &written)
}

/// Parses a patch and finds its duplicate fields. A server-side apply patch may
/// be YAML.
fn read_patch(kind: PatchKind, bytes: &[u8]) -> Result<(Value, DuplicateFields), StatusError> {
    if kind == PatchKind::Apply {
        let (value, duplicate_fields) = yaml::read(bytes).map_err(|problem| {
            StatusError::bad_request(format!("error decoding YAML: {problem}"))
        })?;
        return Ok((value, DuplicateFields::in_yaml(duplicate_fields)));
    }
    let (value, duplicate_fields) = parse(bytes).map_err(|error| {
        let problem = input::json_problem(&error);
        StatusError::bad_request(format!("error decoding patch: {problem}"))
    })?;
    Ok((value, DuplicateFields::in_json(duplicate_fields)))
}

/// POST of a Binding to `bindings`; the Binding names the pod.
pub(super) async fn bindings(call: Call, namespace: Option<String>, body: RequestBody) -> Reply {
    bind_to(call, (None, namespace.unwrap_or_default(), None), body).await
}

/// POST of a Binding to `pods/{name}/binding`.
pub(super) async fn bind(call: Call, target: Target, body: RequestBody) -> Reply {
    let namespace = target.namespace.unwrap_or_default();
    bind_to(
        call,
        (Some(target.kind), namespace, Some(target.name)),
        body,
    )
    .await
}

/// Binds a pod. `kind` is the pod's kind if the path names the pod.
async fn bind_to(
    call: Call,
    (kind, namespace, name): (Option<Arc<KindInfo>>, String, Option<String>),
    body: RequestBody,
) -> Reply {
    plain_shape(&call)?;
    let options = params::write_options(&call.query, "CreateOptions", None, call.user_agent())?;
    let (mut binding, _) = input::object(&call.headers, body, "Binding").await?;
    if !matches!(binding["kind"].as_str(), None | Some("" | "Binding")) {
        return Err(StatusError::bad_request(format!(
            "{} in version {} cannot be handled as a Binding",
            binding["kind"].as_str().unwrap_or_default(),
            binding["apiVersion"],
        )));
    }
    let text = |value: &Value| {
        value
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let named = text(&binding["metadata"]["name"]);
    let name = match (name, named) {
        (Some(name), Some(named)) if name != named => {
            return Err(StatusError::bad_request(
                "name in URL does not match name in Binding object",
            ));
        }
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => {
            return Err(StatusError::bad_request(
                "metadata.name: name the pod to bind",
            ));
        }
    };
    let write_options = || admission::write_options(&call.query, options.dry_run);
    let admission = match &kind {
        None => admission::of_bindings(&call, (&namespace, &name), write_options),
        Some(kind) => {
            let place = Place {
                kind,
                namespace: Some(&namespace),
                name: &name,
                subresource: "binding",
            };
            admission::of(&call, &[Operation::Create], place, write_options)
        }
    };
    if let Some(admission) = &admission {
        admission::complete(&mut binding, ("v1", "Binding"), &namespace, &name);
        binding = admission.admit(Operation::Create, binding).await?;
    }
    if !matches!(
        binding["target"]["kind"].as_str(),
        None | Some("" | "Node" | "Minion")
    ) {
        return Err(StatusError::bad_request(
            "target.kind: a pod can be bound to a Node only",
        ));
    }
    let texts = |field: &str| {
        let values = binding["metadata"][field].as_object().into_iter().flatten();
        values
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    };
    let bind = Bind {
        namespace,
        name,
        uid: text(&binding["metadata"]["uid"]),
        version: text(&binding["metadata"]["resourceVersion"]),
        node: text(&binding["target"]["name"]).ok_or_else(|| {
            StatusError::bad_request("target.name: name the node to bind the pod to")
        })?,
        annotations: texts("annotations"),
        labels: texts("labels"),
        dry_run: options.dry_run,
    };
    call.shared.engine.bind(bind).await?;
    let status = Status {
        code: 201,
        ..Status::success()
    };
    let status = serde_json::to_vec(&status).map_err(StatusError::internal)?;
    reply::document(StatusCode::CREATED, Encoding::Json, status.into())
}

fn code(written: &Written) -> StatusCode {
    if written.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

fn answer(code: StatusCode, wanted: Negotiated, presenter: &Presenter, written: &Written) -> Reply {
    let mut response: Response<Body> =
        reply::document(code, wanted.encoding, presenter.object(&written.object))?;
    reply::warn(&mut response, &written.warnings);
    Ok(response)
}
