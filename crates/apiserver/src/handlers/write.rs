//! POST, PUT and PATCH: create, update, patch, status, finalize, binding, and
//! reviews.

use std::sync::Arc;

use http::{Response, StatusCode};
use longshore_engine::{
    Bind, Create, Finalize, Object, Patch, Subresource, Target, Update, Written,
};
use longshore_model::{KindInfo, PatchKind, Status};
use serde_json::Value;

use super::{object_shape, plain_shape};
use crate::{
    body::Body,
    fault::Fault,
    input::{self, RequestBody},
    negotiate::Wanted,
    params,
    present::Presenter,
    reply::{self, Reply},
    review::Review,
    service::Call,
};

pub(super) async fn create(
    call: Call,
    info: Arc<KindInfo>,
    namespace: Option<String>,
    body: RequestBody,
) -> Reply {
    let wanted = object_shape(&call)?;
    let presenter = Presenter::new(info.clone(), wanted.shape, &call.query)?;
    let options = params::write_options(&call.query, "CreateOptions", None, call.user_agent())?;
    let mut object = read_object(&call.headers, body, &info.gvk.kind).await?;
    input::check_kind(&mut object, &info)?;
    let create = Create {
        kind: info,
        namespace,
        object,
        options,
    };
    let written = call.shared.engine.create(create).await?;
    answer(StatusCode::CREATED, wanted, &presenter, &written)
}

pub(super) async fn update(
    call: Call,
    target: Target,
    subresource: Subresource,
    body: RequestBody,
) -> Reply {
    let wanted = object_shape(&call)?;
    let presenter = Presenter::new(target.kind.clone(), wanted.shape, &call.query)?;
    let options = params::write_options(&call.query, "UpdateOptions", None, call.user_agent())?;
    let mut object = read_object(&call.headers, body, &target.kind.gvk.kind).await?;
    input::check_kind(&mut object, &target.kind)?;
    input::check_name(&object, &target.name, target.namespace.as_deref())?;
    let update = Update {
        target,
        subresource,
        object,
        options,
    };
    let written = call.shared.engine.update(update).await?;
    answer(code(&written), wanted, &presenter, &written)
}

pub(super) async fn patch(
    call: Call,
    target: Target,
    subresource: Subresource,
    body: RequestBody,
) -> Reply {
    let kind = PatchKind::from_media_type(&input::media_type(&call.headers))
        .ok_or_else(|| Fault::unsupported_media_type(&PatchKind::ALL.map(PatchKind::media_type)))?;
    let wanted = object_shape(&call)?;
    let presenter = Presenter::new(target.kind.clone(), wanted.shape, &call.query)?;
    let options =
        params::write_options(&call.query, "PatchOptions", Some(kind), call.user_agent())?;
    let bytes = input::read(body).await?;
    let body: Value = match kind {
        PatchKind::Apply => input::yaml(&bytes).map_err(Fault::bad_request)?,
        _ => serde_json::from_slice(&bytes)
            .map_err(|error| Fault::bad_request(format!("error decoding patch: {error}")))?,
    };
    let patch = Patch {
        target,
        subresource,
        kind,
        body,
        options,
    };
    let written = call.shared.engine.patch(patch).await?;
    answer(code(&written), wanted, &presenter, &written)
}

pub(super) async fn finalize(call: Call, target: Target, body: RequestBody) -> Reply {
    let wanted = object_shape(&call)?;
    let presenter = Presenter::new(target.kind.clone(), wanted.shape, &call.query)?;
    let options = params::write_options(&call.query, "UpdateOptions", None, call.user_agent())?;
    let mut object = read_object(&call.headers, body, &target.kind.gvk.kind).await?;
    input::check_kind(&mut object, &target.kind)?;
    input::check_name(&object, &target.name, None)?;
    let finalize = Finalize {
        name: target.name,
        object,
        dry_run: options.dry_run,
    };
    let object: Arc<Object> = call.shared.engine.finalize(finalize).await?;
    reply::document(StatusCode::OK, wanted.encoding, presenter.object(&object))
}

pub(super) async fn bind(call: Call, target: Target, body: RequestBody) -> Reply {
    plain_shape(&call)?;
    let options = params::write_options(&call.query, "CreateOptions", None, call.user_agent())?;
    let binding = read_object(&call.headers, body, "Binding").await?;
    if !matches!(binding["kind"].as_str(), None | Some("" | "Binding")) {
        return Err(Fault::bad_request(format!(
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
    if text(&binding["metadata"]["name"]).is_some_and(|name| name != target.name) {
        return Err(Fault::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    if !matches!(
        binding["target"]["kind"].as_str(),
        None | Some("" | "Node" | "Minion")
    ) {
        return Err(Fault::bad_request(
            "target.kind: a pod can be bound to a Node only",
        ));
    }
    let annotations = binding["metadata"]["annotations"].as_object();
    let bind = Bind {
        namespace: target.namespace.unwrap_or_default(),
        name: target.name,
        uid: text(&binding["metadata"]["uid"]),
        node: text(&binding["target"]["name"])
            .ok_or_else(|| Fault::bad_request("target.name: name the node to bind the pod to"))?,
        annotations: annotations
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
        dry_run: options.dry_run,
    };
    call.shared.engine.bind(bind).await?;
    let status = Status {
        code: 201,
        ..Status::success()
    };
    let status = serde_json::to_value(status).map_err(Fault::internal)?;
    Ok(reply::value(StatusCode::CREATED, &status))
}

pub(super) async fn review(call: Call, review: Review, body: RequestBody) -> Reply {
    let wanted = plain_shape(&call)?;
    let asked = read_object(&call.headers, body, review.kind).await?;
    let answer = review.answer(asked).to_string();
    reply::document(StatusCode::CREATED, wanted.encoding, answer.into())
}

async fn read_object(
    headers: &http::HeaderMap,
    body: RequestBody,
    kind: &str,
) -> Result<Value, Fault> {
    let bytes = input::read(body).await?;
    input::decode(headers, &bytes, kind)
}

fn code(written: &Written) -> StatusCode {
    if written.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

fn answer(code: StatusCode, wanted: Wanted, presenter: &Presenter, written: &Written) -> Reply {
    let mut response: Response<Body> =
        reply::document(code, wanted.encoding, presenter.object(&written.object))?;
    reply::warn(&mut response, &written.warnings);
    Ok(response)
}
