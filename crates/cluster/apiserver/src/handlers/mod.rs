//! Handlers of routes and methods. A handler parses typed options, calls the
//! engine, and presents the result.

mod admission;
pub(crate) mod aggregated;
mod certificates;
mod converted;
mod delete;
mod evict;
mod kept_logs;
mod logs;
mod meta;
mod proxy;
mod read;
mod review;
mod review_fields;
mod role_rules;
mod streams;
pub(crate) mod test_paths;
mod token;
mod usage;
mod watch;
mod write;

use std::sync::Arc;

use http::Method;
use longshore_builtin::{KindRules, find_served};
use longshore_engine::{Subresource, Target};
use longshore_model::KindInfo;

use crate::{
    call::Call,
    input::RequestBody,
    negotiate::{Negotiated, Shape, negotiate},
    reply::{self, Reply},
    review::Review,
    route::{Resource, Route},
    status_error::StatusError,
    usage::SUMMARY,
};

pub(crate) async fn dispatch(mut call: Call, route: Route, body: RequestBody) -> Reply {
    match route {
        Route::Resource(resource) => {
            let warnings = call.warnings.clone();
            let mut reply = self::resource(call, resource, body).await;
            match &mut reply {
                Ok(response) => reply::warn(response, &warnings.take()),
                Err(error) => error.set_warnings(warnings.take()),
            }
            reply
        }
        // Health checks accept every method.
        Route::Health(..) => meta::dispatch(call, route).await,
        Route::Version | Route::GroupVersion { .. } if call.method != Method::GET => {
            Err(StatusError::wrong_method(&["GET"]))
        }
        route if matches!(call.method, Method::GET | Method::HEAD) => {
            call.method = Method::GET;
            meta::dispatch(call, route).await
        }
        _ => Err(StatusError::wrong_method(&["GET", "HEAD"])),
    }
}

async fn resource(mut call: Call, path: Resource, body: RequestBody) -> Reply {
    if let Some(found) = Review::find(&path.group, &path.version, &path.plural) {
        let in_place = path.name.is_none() && path.namespace.is_some() == found.namespaced;
        return match call.method {
            Method::POST if in_place => review::create(call, found, path.namespace, body).await,
            _ if in_place => Err(StatusError::wrong_method(&["POST"])),
            _ => Err(StatusError::unknown_path()),
        };
    }
    if path.is_bindings() {
        return match call.method {
            Method::POST => write::bindings(call, path.namespace, body).await,
            _ => Err(StatusError::wrong_method(&["POST"])),
        };
    }
    if path.subresource.as_deref() == Some(SUMMARY) {
        let name = path.name.unwrap_or_default();
        return usage::summary(call, &name).await;
    }
    if usage::is_served(&call, &path) {
        return usage::read(call, path).await;
    }
    let served = call
        .shared
        .engine
        .served_at(&path.group, &path.version, &path.plural)
        .ok_or_else(StatusError::unknown_path)?;
    let deprecation = served.custom.as_ref().and_then(|kind| kind.deprecation());
    let deprecation = deprecation.map(str::to_owned);
    let info = served.info.clone();
    call.custom = Some(served);
    let mut response = kind(call, info, path, body).await?;
    reply::warn(&mut response, deprecation.as_slice());
    Ok(response)
}

/// Handles a request for objects of a kind.
async fn kind(call: Call, info: Arc<KindInfo>, path: Resource, body: RequestBody) -> Reply {
    let namespaced = info.is_namespaced();
    if namespaced != path.namespace.is_some() && (path.name.is_some() || !namespaced) {
        return Err(StatusError::unknown_path());
    }
    if path.watch {
        return match call.method {
            Method::GET => watch::watch(call, info, path.namespace, path.name).await,
            _ => Err(StatusError::wrong_method(&["GET"])),
        };
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
        Some(word) if word == "proxy" && target.kind.has_subresource(&word) => {
            proxy::proxy(call, target, path.proxied, body).await
        }
        None => item(call, target, body).await,
        Some(word) if target.kind.has_subresource(&word) => {
            subresource(call, target, &word, body).await
        }
        Some(_) => Err(StatusError::unknown_path()),
    }
}

async fn collection(
    call: Call,
    info: Arc<KindInfo>,
    namespace: Option<String>,
    body: RequestBody,
) -> Reply {
    // Across all namespaces, objects can be read but not written.
    let writable = !info.is_namespaced() || namespace.is_some();
    let supports_delete_collection =
        writable && find_served(&info.gvk).is_none_or(KindRules::supports_delete_collection);
    match call.method {
        Method::GET if call.query.flag("watch") == Some(true) => {
            watch::watch(call, info, namespace, None).await
        }
        Method::GET => read::list(call, info, namespace).await,
        Method::POST if writable => write::create(call, info, namespace, body).await,
        Method::DELETE if supports_delete_collection => {
            delete::collection(call, info, namespace, body).await
        }
        _ if supports_delete_collection => {
            Err(StatusError::wrong_method(&["GET", "POST", "DELETE"]))
        }
        _ if writable => Err(StatusError::wrong_method(&["GET", "POST"])),
        _ => Err(StatusError::wrong_method(&["GET"])),
    }
}

async fn item(call: Call, target: Target, body: RequestBody) -> Reply {
    match call.method {
        Method::GET => read::get(&call, &target).await,
        Method::PUT => write::update(call, target, Subresource::None, body).await,
        Method::PATCH => write::patch(call, target, Subresource::None, body).await,
        Method::DELETE => delete::item(call, target, body).await,
        _ => Err(StatusError::wrong_method(&[
            "GET", "PUT", "PATCH", "DELETE",
        ])),
    }
}

async fn subresource(call: Call, target: Target, word: &str, body: RequestBody) -> Reply {
    match (word, call.method.clone()) {
        ("status", Method::GET) => read::get(&call, &target).await,
        ("status", Method::PUT) => write::update(call, target, Subresource::Status, body).await,
        ("status", Method::PATCH) => write::patch(call, target, Subresource::Status, body).await,
        ("status", _) => Err(StatusError::wrong_method(&["GET", "PUT", "PATCH"])),
        ("approval", Method::GET) => read::get(&call, &target).await,
        ("approval", Method::PUT) => write::update(call, target, Subresource::Approval, body).await,
        ("approval", Method::PATCH) => {
            write::patch(call, target, Subresource::Approval, body).await
        }
        ("approval", _) => Err(StatusError::wrong_method(&["GET", "PUT", "PATCH"])),
        ("ephemeralcontainers", Method::GET) => read::get(&call, &target).await,
        ("ephemeralcontainers", Method::PUT) => {
            write::update(call, target, Subresource::EphemeralContainers, body).await
        }
        ("ephemeralcontainers", Method::PATCH) => {
            write::patch(call, target, Subresource::EphemeralContainers, body).await
        }
        ("ephemeralcontainers", _) => Err(StatusError::wrong_method(&["GET", "PUT", "PATCH"])),
        ("resize", Method::GET) => read::get(&call, &target).await,
        ("resize", Method::PUT) => write::update(call, target, Subresource::Resize, body).await,
        ("resize", Method::PATCH) => write::patch(call, target, Subresource::Resize, body).await,
        ("resize", _) => Err(StatusError::wrong_method(&["GET", "PUT", "PATCH"])),
        ("scale", Method::GET) => read::scale(&call, &target),
        ("scale", Method::PUT) => write::update(call, target, Subresource::Scale, body).await,
        ("scale", Method::PATCH) => write::patch(call, target, Subresource::Scale, body).await,
        ("scale", _) => Err(StatusError::wrong_method(&["GET", "PUT", "PATCH"])),
        ("finalize", Method::PUT) => write::update(call, target, Subresource::Finalize, body).await,
        ("finalize", _) => Err(StatusError::wrong_method(&["PUT"])),
        ("binding", Method::POST) => write::bind(call, target, body).await,
        ("binding", _) => Err(StatusError::wrong_method(&["POST"])),
        ("eviction", Method::POST) => evict::evict(call, target, body).await,
        ("eviction", _) => Err(StatusError::wrong_method(&["POST"])),
        ("exec", Method::GET | Method::POST) => streams::exec(call, target).await,
        ("attach", Method::GET | Method::POST) => streams::attach(call, target).await,
        ("portforward", Method::GET | Method::POST) => streams::port_forward(call, target).await,
        ("exec" | "attach" | "portforward", _) => Err(StatusError::wrong_method(&["GET", "POST"])),
        ("log", Method::GET) => logs::log(call, target).await,
        ("token", Method::POST) => token::request(call, target, body).await,
        ("token", _) => Err(StatusError::wrong_method(&["POST"])),
        ("log", _) => Err(StatusError::wrong_method(&["GET"])),
        _ => Err(StatusError::unknown_path()),
    }
}

/// Negotiates the shape of a single object.
fn object_shape(call: &Call) -> Result<Negotiated, StatusError> {
    negotiate(&call.headers, |shape| {
        matches!(shape, Shape::Object | Shape::Table(_) | Shape::Metadata(_))
    })
}

/// Negotiates the encoding of a response that has only one shape.
fn plain_shape(call: &Call) -> Result<Negotiated, StatusError> {
    negotiate(&call.headers, |shape| shape == Shape::Object)
}
