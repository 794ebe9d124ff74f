//! DELETE of an object and of a collection.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use longshore_builtin::find_served;
use longshore_engine::{
    Delete, DeleteCollection, DeleteOptions, Deleted, Engine, Error, Object, Reviewer, Target,
};
use longshore_model::{KindInfo, Status, StatusDetails};

use super::{
    admission::{self, Place},
    converted, object_shape, plain_shape,
};
use crate::{
    call::Call,
    input::{self, RequestBody},
    negotiate::Shape,
    params,
    present::Presenter,
    query::Query,
    reply::{self, Reply},
    status_error::StatusError,
    webhooks::Operation,
};

pub(super) async fn item(call: Call, target: Target, body: RequestBody) -> Reply {
    let wanted = object_shape(&call)?;
    let presenter = Presenter::new(&call, target.kind.clone(), wanted.shape)?;
    let options = read_options(&call.headers, &call.query, body).await?;
    let info = target.kind.clone();
    // Only the legacy option `orphanDependents: false` is answered with 202.
    let pending = match options.orphan_dependents {
        Some(false) => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    let place = Place {
        kind: &info,
        namespace: target.namespace.as_deref(),
        name: &target.name,
        subresource: "",
    };
    let admission = admission::of(&call, &[Operation::Delete], place, || {
        admission::delete_options(&options)
    });
    let (engine, delete) = (&call.shared.engine, Delete { target, options });
    let mut deleted = match &admission {
        Some(admission) => engine.delete_reviewed(delete, admission).await?,
        None => engine.delete(delete).await?,
    };
    if let Deleted::Pending(object) = &mut deleted {
        call.present(&info, object).await?;
    }
    match deleted {
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
            let status = serde_json::to_vec(&status).map_err(StatusError::internal)?;
            reply::document(StatusCode::OK, wanted.encoding, status.into())
        }
    }
}

/// Returns true if a delete returns the deleted object instead of a `Status`.
fn returns_deleted(info: &KindInfo) -> bool {
    find_served(&info.gvk).is_some_and(|rules| rules.returns_deleted)
}

pub(super) async fn collection(
    call: Call,
    info: Arc<KindInfo>,
    namespace: Option<String>,
    body: RequestBody,
) -> Reply {
    plain_shape(&call)?;
    let list = params::list_request(&call.query, info.clone(), namespace.clone())?;
    let presenter = Presenter::new(&call, info.clone(), Shape::Object)?;
    let options = read_options(&call.headers, &call.query, body).await?;
    let place = Place {
        kind: &info,
        namespace: namespace.as_deref(),
        name: "",
        subresource: "",
    };
    let admission = admission::of(&call, &[Operation::Delete], place, || {
        admission::delete_options(&options)
    });
    let engine = &call.shared.engine;
    let converter = call.converter();
    if converter.is_some() && engine.converted_fields(&info, &list.fields)?.is_some() {
        let page = converted::list(&call, list, converter.as_ref()).await?;
        delete_listed(engine, &info, &page.items, &options, admission.as_ref()).await?;
        return Ok(reply::json(StatusCode::OK, presenter.list(page)));
    }
    let delete = DeleteCollection { list, options };
    let mut page = match &admission {
        Some(admission) => engine.delete_collection_reviewed(delete, admission).await?,
        None => engine.delete_collection(delete).await?,
    };
    if let Some(converter) = converter {
        converter.present(&info, &mut page.items).await?;
    }
    Ok(reply::json(StatusCode::OK, presenter.list(page)))
}

/// Deletes the objects of a list that still exist.
async fn delete_listed(
    engine: &Engine,
    info: &Arc<KindInfo>,
    objects: &[Arc<Object>],
    options: &DeleteOptions,
    admission: Option<&impl Reviewer>,
) -> Result<(), Error> {
    for object in objects {
        let delete = Delete {
            target: Target {
                kind: info.clone(),
                namespace: object.namespace().map(str::to_owned),
                name: object.name().to_owned(),
            },
            options: options.clone(),
        };
        let deleted = match admission {
            Some(admission) => engine.delete_reviewed(delete, admission).await,
            None => engine.delete(delete).await,
        };
        match deleted {
            Ok(_) | Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the delete options; the body takes precedence over the query.
async fn read_options(
    headers: &HeaderMap,
    query: &Query,
    body: RequestBody,
) -> Result<DeleteOptions, StatusError> {
    let bytes = input::read(body).await?;
    if bytes.is_empty() {
        return params::delete_options(query, None);
    }
    let (options, _) = input::decode(&input::media_type(headers), &bytes, "DeleteOptions")?;
    match options["kind"].as_str() {
        None | Some("" | "DeleteOptions") => params::delete_options(query, Some(options)),
        Some(other) => Err(StatusError::bad_request(format!(
            "decoded object cannot be converted to DeleteOptions: it is a {other}"
        ))),
    }
}
