//! The attributes of a request that fault injection rules match: the verb and
//! resource of Kubernetes' authorization, the path, and the client.

use http::{HeaderMap, Method, header};

use crate::{
    query::Query,
    route::{Resource, Route},
    verb::verb,
};

/// The attributes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attributes<'a> {
    /// `get`, `list`, `watch`, …; for non-resource paths the method in lower case.
    pub(crate) verb: String,
    pub(crate) path: &'a str,
    pub(crate) resource: Option<&'a Resource>,
    pub(crate) user_agent: &'a str,
}

impl<'a> Attributes<'a> {
    pub(crate) fn new(
        method: &Method,
        path: &'a str,
        query: &Query,
        route: Option<&'a Route>,
        headers: &'a HeaderMap,
    ) -> Self {
        let resource = match route {
            Some(Route::Resource(resource)) => Some(resource),
            _ => None,
        };
        let verb = match resource {
            Some(resource) => match verb(method, resource, query) {
                "" => method.as_str().to_ascii_lowercase(),
                verb => verb.to_owned(),
            },
            None => method.as_str().to_ascii_lowercase(),
        };
        let user_agent = headers
            .get(header::USER_AGENT)
            .and_then(|agent| agent.to_str().ok())
            .unwrap_or_default();
        Self {
            verb,
            path,
            resource,
            user_agent,
        }
    }

    /// `pods`, or `pods/status`.
    pub(crate) fn plural(&self) -> String {
        match self.resource {
            None => String::new(),
            Some(Resource {
                plural,
                subresource: Some(sub),
                ..
            }) => format!("{plural}/{sub}"),
            Some(resource) => resource.plural.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn verbs() {
        for (method, uri, expected) in [
            ("GET", "/api/v1/pods", "list pods"),
            ("GET", "/api/v1/pods?watch=1", "watch pods"),
            ("GET", "/api/v1/watch/pods", "watch pods"),
            ("GET", "/api/v1/namespaces/a/pods/p?watch=1", "get pods"),
            (
                "PUT",
                "/api/v1/namespaces/a/pods/p/status",
                "update pods/status",
            ),
            ("POST", "/api/v1/namespaces/a/pods", "create pods"),
            (
                "DELETE",
                "/api/v1/namespaces/a/pods",
                "deletecollection pods",
            ),
            ("DELETE", "/api/v1/nodes/n", "delete nodes"),
            ("GET", "/version", "get "),
        ] {
            let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
            let route = Route::parse(path).ok();
            let query = Query::parse(Some(query)).unwrap();
            let method = method.parse().unwrap();
            let headers = HeaderMap::new();
            let attributes = Attributes::new(&method, path, &query, route.as_ref(), &headers);
            assert_eq!(
                format!("{} {}", attributes.verb, attributes.plural()),
                expected
            );
        }
    }
}
