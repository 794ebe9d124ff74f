//! DELETE of an object and of a collection.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use longshore_engine::{Delete, DeleteCollection, DeleteOptions, Deleted, Target};
use longshore_model::{KindInfo, Status, StatusDetails};

use super::{object_shape, plain_shape};
use crate::{
    call::Call,
    fault::Fault,
    input::{self, RequestBody},
    negotiate::Shape,
    params,
    present::Presenter,
    query::Query,
    reply::{self, Reply},
};

pub(super) async fn item(call: Call, target: Target, body: RequestBody) -> Reply {
    let wanted = object_shape(&call)?;
    let presenter = Presenter::new(&call, target.kind.clone(), wanted.shape)?;
    let options = read_options(&call.headers, &call.query, body).await?;
    let info = target.kind.clone();
    // Only the old option not to orphan is answered with 202.
    let pending = match options.orphan_dependents {
        Some(false) => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    match call
        .shared
        .engine
        .delete(Delete { target, options })
        .await?
    {
        Deleted::Pending(object) => {
            reply::document(pending, wanted.encoding, presenter.object(&object))
        }
        Deleted::Gone(object) if returns_deleted(&info) => {
            reply::document(StatusCode::OK, wanted.encoding, presenter.object(&object))
        }
        Deleted::Gone(object) => {
            let details = StatusDetails {
                name: object.name().to_owned(),
                group: info.gvk.group.to_string(),
                kind: info.plural.to_string(),
                uid: object.uid().to_owned(),
                ..StatusDetails::default()
            };
            let status = Status {
                details: Some(details),
                ..Status::success()
            };
            let status = serde_json::to_vec(&status).map_err(Fault::internal)?;
            reply::document(StatusCode::OK, wanted.encoding, status.into())
        }
    }
}

/// A delete of these kinds returns the deleted object in place of a `Status`.
const RETURNED: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ResourceQuota",
            "Service",
            "ServiceAccount",
        ],
    ),
    (
        "storage.k8s.io",
        &[
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
    ),
];

fn returns_deleted(info: &KindInfo) -> bool {
    RETURNED
        .iter()
        .any(|(group, kinds)| info.gvk.group == *group && kinds.contains(&info.gvk.kind.as_ref()))
}

pub(super) async fn collection(
    call: Call,
    info: Arc<KindInfo>,
    namespace: Option<String>,
    body: RequestBody,
) -> Reply {
    plain_shape(&call)?;
    let list = params::list_request(&call.query, info.clone(), namespace)?;
    let presenter = Presenter::new(&call, info, Shape::Object)?;
    let options = read_options(&call.headers, &call.query, body).await?;
    let engine = &call.shared.engine;
    let page = engine
        .delete_collection(DeleteCollection { list, options })
        .await?;
    Ok(reply::json(StatusCode::OK, presenter.list(page)))
}

/// The body's options win over the query's.
async fn read_options(
    headers: &HeaderMap,
    query: &Query,
    body: RequestBody,
) -> Result<DeleteOptions, Fault> {
    let bytes = input::read(body).await?;
    if bytes.is_empty() {
        return params::delete_options(query, None);
    }
    let (options, _) = input::decode(&input::media_type(headers), &bytes, "DeleteOptions")?;
    match options["kind"].as_str() {
        None | Some("" | "DeleteOptions") => params::delete_options(query, Some(options)),
        Some(other) => Err(Fault::bad_request(format!(
            "decoded object cannot be converted to DeleteOptions: it is a {other}"
        ))),
    }
}
