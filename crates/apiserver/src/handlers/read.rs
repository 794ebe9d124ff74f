//! GET of an object and of a collection.

use std::sync::Arc;

use http::StatusCode;
use longshore_engine::{ListRequest, Target, scale_kind};
use longshore_model::KindInfo;

use super::object_shape;
use crate::{
    negotiate::{Encoding, Shape, negotiate},
    params::{self, ListParams, Selection},
    present::Presenter,
    reply::{self, Reply},
    service::Call,
};

pub(super) fn get(call: &Call, target: &Target) -> Reply {
    let wanted = object_shape(call)?;
    let presenter = Presenter::new(call, target.kind.clone(), wanted.shape)?;
    let at = params::get_version(&call.query)?;
    let engine = &call.shared.engine;
    let object = engine.get(&target.kind, target.namespace.as_deref(), &target.name, at)?;
    reply::document(StatusCode::OK, wanted.encoding, presenter.object(&object))
}

/// The `Scale` of an object.
pub(super) fn scale(call: &Call, target: &Target) -> Reply {
    let wanted = object_shape(call)?;
    let presenter = Presenter::new(call, scale_kind(), wanted.shape)?;
    let at = params::get_version(&call.query)?;
    let engine = &call.shared.engine;
    let scale = engine.get_scale(&target.kind, target.namespace.as_deref(), &target.name, at)?;
    reply::document(StatusCode::OK, wanted.encoding, presenter.object(&scale))
}

pub(super) fn list(call: Call, info: Arc<KindInfo>, namespace: Option<String>) -> Reply {
    let wanted = negotiate(&call.headers, |shape| {
        matches!(
            shape,
            Shape::Object | Shape::Table(_) | Shape::MetadataList(_)
        )
    })?;
    let presenter = Presenter::new(&call, info.clone(), wanted.shape)?;
    let params = ListParams::parse(&call.query)?;
    let selection = Selection::parse(&call.query)?;
    let page = call.shared.engine.list(&ListRequest {
        kind: info,
        namespace,
        labels: selection.labels,
        fields: selection.fields,
        limit: params.limit,
        cursor: params.cursor,
        version: params.version,
    })?;
    let body = presenter.list(page);
    match wanted.encoding {
        Encoding::Json => Ok(reply::json(StatusCode::OK, body)),
        encoding => {
            let whole = body
                .into_chunks()
                .map(|chunks| chunks.flatten().collect::<Vec<u8>>());
            reply::document(StatusCode::OK, encoding, whole.unwrap_or_default().into())
        }
    }
}
