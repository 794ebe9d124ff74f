//! The verb of a resource request, by the rules of Kubernetes' authorization.

use http::Method;

use crate::{query::Query, route::Resource};

/// Returns the verb of a resource request; empty for methods that the API does not have.
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
        // The API supports no other methods.
        Method::OPTIONS => "options",
        Method::TRACE => "trace",
        Method::CONNECT => "connect",
        _ => "",
    }
}
