//! GET of an object and of a collection.

use std::sync::Arc;

use http::StatusCode;
use longshore_engine::{Target, scale_kind};
use longshore_model::KindInfo;

use super::{converted, object_shape};
use crate::{
    call::Call,
    negotiate::{Encoding, Shape, negotiate},
    offload::offload_for,
    params,
    present::Presenter,
    reply::{self, Reply},
};

pub(super) async fn get(call: &Call, target: &Target) -> Reply {
    let wanted = object_shape(call)?;
    let presenter = Presenter::new(call, target.kind.clone(), wanted.shape)?;
    let at = params::get_version(&call.query)?;
    let engine = &call.shared.engine;
    let mut object = engine.get(&target.kind, target.namespace.as_deref(), &target.name, at)?;
    call.present(&target.kind, &mut object).await?;
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

pub(super) async fn list(call: Call, info: Arc<KindInfo>, namespace: Option<String>) -> Reply {
    let wanted = negotiate(&call.headers, |shape| {
        matches!(
            shape,
            Shape::Object | Shape::Table(_) | Shape::MetadataList(_)
        )
    })?;
    let presenter = Presenter::new(&call, info.clone(), wanted.shape)?;
    let request = params::list_request(&call.query, info, namespace)?;
    let converter = call.converter();
    let page = converted::list(&call, request, converter.as_ref()).await?;
    let body = presenter.list(page);
    match wanted.encoding {
        Encoding::Json => Ok(reply::json(StatusCode::OK, body)),
        encoding => {
            let whole = move || {
                let chunks = body.into_chunks();
                let whole = chunks.map(|chunks| chunks.flatten().collect::<Vec<u8>>());
                reply::document(StatusCode::OK, encoding, whole.unwrap_or_default().into())
            };
            offload_for(&call.user, whole).await?
        }
    }
}
