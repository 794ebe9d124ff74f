//! What each route and method does. Handlers read typed options, ask the
//! engine, and present what it answers.

mod delete;
mod logs;
mod meta;
mod read;
mod watch;
mod write;

use std::sync::Arc;

use http::Method;
use longshore_engine::{Subresource, Target};
use longshore_model::KindInfo;

use crate::{
    fault::Fault,
    input::RequestBody,
    negotiate::{Shape, Wanted, negotiate},
    reply::Reply,
    review,
    route::{Resource, Route},
    service::Call,
};

pub(crate) async fn dispatch(call: Call, route: Route, body: RequestBody) -> Reply {
    match route {
        Route::Resource(resource) => self::resource(call, resource, body).await,
        _ if call.method != Method::GET => Err(Fault::wrong_method()),
        route => meta::dispatch(call, route).await,
    }
}

async fn resource(call: Call, path: Resource, body: RequestBody) -> Reply {
    if let Some(review) = review::find(&path.group, &path.version, &path.plural) {
        return match (&path.name, &path.namespace) {
            (None, None) if call.method == Method::POST => write::review(call, review, body).await,
            (None, None) => Err(Fault::wrong_method()),
            _ => Err(Fault::unknown_path()),
        };
    }
    let info = call
        .shared
        .engine
        .find(&path.group, &path.version, &path.plural)
        .ok_or_else(Fault::unknown_path)?;
    let namespaced = info.is_namespaced();
    if namespaced != path.namespace.is_some() && (path.name.is_some() || !namespaced) {
        return Err(Fault::unknown_path());
    }
    let Some(name) = path.name else {
        return collection(call, info, path.namespace, body).await;
    };
    let target = Target {
        kind: info,
        namespace: path.namespace,
        name,
    };
    match path.subresource {
        None => item(call, target, body).await,
        Some(word) if target.kind.has_subresource(&word) => {
            subresource(call, target, &word, body).await
        }
        Some(_) => Err(Fault::unknown_path()),
    }
}

async fn collection(
    call: Call,
    info: Arc<KindInfo>,
    namespace: Option<String>,
    body: RequestBody,
) -> Reply {
    // Over all namespaces, objects can be read but not written.
    let writable = !info.is_namespaced() || namespace.is_some();
    match call.method {
        Method::GET if call.query.flag("watch") == Some(true) => {
            watch::watch(call, info, namespace)
        }
        Method::GET => read::list(call, info, namespace),
        Method::POST if writable => write::create(call, info, namespace, body).await,
        Method::DELETE if writable && info.gvk.kind != "Namespace" => {
            delete::collection(call, info, namespace, body).await
        }
        _ => Err(Fault::wrong_method()),
    }
}

async fn item(call: Call, target: Target, body: RequestBody) -> Reply {
    match call.method {
        Method::GET => read::get(&call, &target),
        Method::PUT => write::update(call, target, Subresource::None, body).await,
        Method::PATCH => write::patch(call, target, Subresource::None, body).await,
        Method::DELETE => delete::item(call, target, body).await,
        _ => Err(Fault::wrong_method()),
    }
}

async fn subresource(call: Call, target: Target, word: &str, body: RequestBody) -> Reply {
    match (word, call.method.clone()) {
        ("status", Method::GET) => read::get(&call, &target),
        ("status", Method::PUT) => write::update(call, target, Subresource::Status, body).await,
        ("status", Method::PATCH) => write::patch(call, target, Subresource::Status, body).await,
        ("finalize", Method::PUT) => write::finalize(call, target, body).await,
        ("binding", Method::POST) => write::bind(call, target, body).await,
        ("log", Method::GET) => logs::log(call, target).await,
        _ => Err(Fault::wrong_method()),
    }
}

/// The shape of a single object.
fn object_shape(call: &Call) -> Result<Wanted, Fault> {
    negotiate(&call.headers, |shape| {
        matches!(shape, Shape::Object | Shape::Table(_) | Shape::Metadata(_))
    })
}

/// The shape of what has one shape only.
fn plain_shape(call: &Call) -> Result<Wanted, Fault> {
    negotiate(&call.headers, |shape| shape == Shape::Object)
}
