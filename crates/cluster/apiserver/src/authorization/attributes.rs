//! The attributes of a request that authorization evaluates.

use http::Method;
use longshore_model::{FieldSelector, StatusDetails};
use percent_encoding::percent_decode_str;

use crate::{query::Query, status_error::StatusError};

/// The attributes of a request. `resource` is not empty for requests for resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The path of a request that is not for a resource.
    pub(crate) path: Option<String>,
}

impl Attributes {
    /// Returns the attributes of an HTTP request. As in Kubernetes, they depend
    /// only on the form of the path.
    pub(crate) fn of_request(method: &Method, path: &str, query: &Query) -> Self {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let parts: Vec<&str> = match path.trim_matches('/') {
            "" => Vec::new(),
            trimmed => trimmed.split('/').collect(),
        };
        match parts.as_slice() {
            ["api", _, rest @ ..] if !rest.is_empty() => Self::of_resource("", rest, method, query),
            ["apis", group, _, rest @ ..] if !rest.is_empty() => {
                Self::of_resource(group, rest, method, query)
            }
            _ => Self {
                verb: method.as_str().to_ascii_lowercase(),
                path: Some(path.into_owned()),
                ..Self::default()
            },
        }
    }

    fn of_resource(group: &str, parts: &[&str], method: &Method, query: &Query) -> Self {
        let (special, parts) = match parts {
            [verb @ ("watch" | "proxy"), rest @ ..] if !rest.is_empty() => (Some(*verb), rest),
            _ => (None, parts),
        };
        let (namespace, parts) = match parts {
            ["namespaces", name, "status" | "finalize"] | ["namespaces", name] => (*name, parts),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            _ => ("", parts),
        };
        let part = |index: usize| parts.get(index).copied().unwrap_or_default().to_owned();
        let mut name = part(1);
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let verb = match (special, method) {
            (Some(verb), _) => verb,
            (None, _) if reads && !name.is_empty() => "get",
            (None, _) if reads => {
                name = selected_name(query).unwrap_or_default();
                if query.flag("watch") == Some(true) {
                    "watch"
                } else {
                    "list"
                }
            }
            (None, &Method::POST) => "create",
            (None, &Method::PUT) => "update",
            (None, &Method::PATCH) => "patch",
            (None, &Method::DELETE) if name.is_empty() => "deletecollection",
            (None, &Method::DELETE) => "delete",
            _ => "",
        };
        Self {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: part(0),
            subresource: if special.is_none() {
                part(2)
            } else {
                String::new()
            },
            namespace: namespace.to_owned(),
            name,
            path: None,
        }
    }

    /// The resource with its subresource, in the form that rules use.
    pub(crate) fn combined_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// Returns 403: the user may not send this request. `reason` may be empty.
    pub(crate) fn forbidden(&self, user: &str, reason: &str) -> StatusError {
        let verb = &self.verb;
        let action = match &self.path {
            Some(path) => format!("User {user:?} cannot {verb} path {path:?}"),
            None => {
                let (resource, group) = (self.combined_resource(), &self.group);
                let scope = match self.namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                format!(
                    "User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}"
                )
            }
        };
        let action = action
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let message = match reason {
            "" => action,
            reason => format!("{action}: {reason}"),
        };
        forbidden(&self.group, &self.resource, &self.name, &message)
    }
}

/// Returns 403 for an object, for a collection (without a name), or for neither (without a
/// resource).
pub(crate) fn forbidden(group: &str, resource: &str, name: &str, message: &str) -> StatusError {
    let qualified = match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    };
    let message = match (resource, name) {
        ("", _) => format!("forbidden: {message}"),
        (_, "") => format!("{qualified} is forbidden: {message}"),
        _ => format!("{qualified} {name:?} is forbidden: {message}"),
    };
    let mut error = StatusError::new(longshore_model::StatusReason::Forbidden, message);
    error.set_details(StatusDetails {
        group: group.to_owned(),
        kind: resource.to_owned(),
        name: name.to_owned(),
        ..StatusDetails::default()
    });
    error
}

/// The name that the field selector of a request for several objects requires.
fn selected_name(query: &Query) -> Option<String> {
    let fields: FieldSelector = query.first("fieldSelector")?.parse().ok()?;
    let name = fields.required("metadata.name")?;
    let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::{
        route::{Resource, Route},
        verb::verb,
    };

    fn of(method: &str, path: &str) -> String {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let query = Query::parse(Some(query)).unwrap();
        let a = Attributes::of_request(&method.parse().unwrap(), path, &query);
        match &a.path {
            Some(path) => format!("{} {path}", a.verb),
            None => format!(
                "{} {}/{} ns={} name={}",
                a.verb,
                a.group,
                a.combined_resource(),
                a.namespace,
                a.name
            ),
        }
    }

    #[test]
    fn requests() {
        for (method, path, expected) in [
            ("GET", "/", "get /"),
            ("POST", "/api", "post /api"),
            ("GET", "/api/v1", "get /api/v1"),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
            ("GET", "/version/", "get /version/"),
            ("GET", "/api/v1/pods", "list /pods ns= name="),
            ("HEAD", "/api/v1/pods", "list /pods ns= name="),
            ("GET", "/api/v1/pods?watch=1", "watch /pods ns= name="),
            ("GET", "/api/v1/pods?watch=0", "list /pods ns= name="),
            (
                "GET",
                "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dp",
                "list /pods ns=a name=p",
            ),
            ("GET", "/api/v1/namespaces/a", "get /namespaces ns=a name=a"),
            ("GET", "/api/v1/namespaces", "list /namespaces ns= name="),
            (
                "PUT",
                "/api/v1/namespaces/a/finalize",
                "update /namespaces/finalize ns=a name=a",
            ),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/a/deployments",
                "deletecollection apps/deployments ns=a name=",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/d/scale",
                "patch apps/deployments/scale ns=a name=d",
            ),
            (
                "POST",
                "/api/v1/namespaces/a/pods/p/exec?command=id",
                "create /pods/exec ns=a name=p",
            ),
            // The logs of all pods of Jobs, and of a deleted pod.
            (
                "GET",
                "/api/v1/namespaces/a/pods/*/log?labelSelector=x",
                "get /pods/log ns=a name=*",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/pods/p/log?uid=u",
                "get /pods/log ns=a name=p",
            ),
            (
                "GET",
                "/api/v1/watch/namespaces/a/pods/p",
                "watch /pods ns=a name=p",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/services/s/proxy/some/path",
                "get /services/proxy ns=a name=s",
            ),
        ] {
            assert_eq!(of(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn messages_are_those_of_kubernetes() {
        let message = |method: &str, path: &str, reason: &str| {
            let query = Query::default();
            let a = Attributes::of_request(&method.parse().unwrap(), path, &query);
            a.forbidden("x", reason).status().message.clone()
        };
        assert_eq!(
            message("GET", "/api/v1/namespaces/default/pods", ""),
            r#"pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "default""#
        );
        assert_eq!(
            message(
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/d/scale",
                "RBAC: why"
            ),
            r#"deployments.apps "d" is forbidden: User "x" cannot patch resource "deployments/scale" in API group "apps" in the namespace "a": RBAC: why"#
        );
        assert_eq!(
            message("DELETE", "/api/v1/nodes", ""),
            r#"nodes is forbidden: User "x" cannot deletecollection resource "nodes" in API group "" at the cluster scope"#
        );
        assert_eq!(
            message("GET", "/metrics", ""),
            r#"forbidden: User "x" cannot get path "/metrics""#
        );
    }

    fn of_route(method: &Method, resource: &Resource, query: &Query) -> Attributes {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let verb = verb(method, resource, query);
        let own = resource.plural == "namespaces" && resource.namespace.is_none();
        Attributes {
            verb: verb.to_owned(),
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            subresource: text(&resource.subresource),
            namespace: if own {
                text(&resource.name)
            } else {
                text(&resource.namespace)
            },
            name: text(&resource.name),
            path: None,
        }
    }

    proptest! {
        /// Authorization and execution read the same request.
        #[test]
        fn attributes_agree_with_the_route(
            method in prop::sample::select(vec!["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
            path in "/(api|apis/apps)/v1(/(watch|namespaces|pods|status|finalize|a|%61|b%2Fc|\\.\\.)){1,6}/?",
            watch in prop::sample::select(vec!["", "watch=1", "watch=false"]),
        ) {
            let query = Query::parse(Some(watch)).unwrap();
            let method: Method = method.parse().unwrap();
            if let Ok(Route::Resource(resource)) = Route::parse(&path) {
                // Other methods are refused on these paths.
                let reads = matches!(method, Method::GET | Method::HEAD);
                prop_assume!(reads || !resource.watch);
                let seen = Attributes::of_request(&method, &path, &query);
                prop_assert_eq!(seen, of_route(&method, &resource, &query));
            }
        }
    }
}
