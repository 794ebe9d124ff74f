//! The verb of a request about objects, by its name in Kubernetes'
//! authorization.

use http::Method;

use crate::{query::Query, route::Resource};

/// The verb of a request about objects; empty for methods that no API has.
pub(crate) fn verb(method: &Method, resource: &Resource, query: &Query) -> &'static str {
    let one = resource.name.is_some();
    match *method {
        Method::GET | Method::HEAD if resource.watch => "watch",
        Method::GET | Method::HEAD if one => "get",
        Method::GET | Method::HEAD if query.flag("watch") == Some(true) => "watch",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if one => "delete",
        Method::DELETE => "deletecollection",
        // Of the others none is one of an API's.
        Method::OPTIONS => "options",
        Method::TRACE => "trace",
        Method::CONNECT => "connect",
        _ => "",
    }
}
