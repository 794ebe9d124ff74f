//! Paths into typed routes. Pure: which kinds exist is looked up later.

use percent_encoding::percent_decode_str;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`: the paths there are.
    Root,
    /// `/healthz`, `/livez`, `/readyz`, and single checks under them.
    Health(&'static str),
    /// `/version`.
    Version,
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiV3Index,
    /// `/openapi/v3/{group version}`.
    OpenApiV3(String),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/{version}` and `/apis/{group}/{version}`.
    GroupVersion { group: String, version: String },
    /// Objects of a kind.
    Resource(Resource),
}

/// A collection (`name` is `None`), an object, or a subresource of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl Route {
    /// The route of a path; `None` when no path of this API looks like that.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Some(Self::Root);
        }
        let parts = path.split('/').map(segment).collect::<Option<Vec<_>>>()?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["healthz", ..] => Some(Self::Health("healthz")),
            ["livez", ..] => Some(Self::Health("livez")),
            ["readyz", ..] => Some(Self::Health("readyz")),
            ["version"] => Some(Self::Version),
            ["openapi", "v2"] => Some(Self::OpenApiV2),
            ["openapi", "v3"] => Some(Self::OpenApiV3Index),
            ["openapi", "v3", rest @ ..] => Some(Self::OpenApiV3(rest.join("/"))),
            ["api"] => Some(Self::CoreVersions),
            ["apis"] => Some(Self::Groups),
            ["apis", group] => Some(Self::Group((*group).to_owned())),
            ["api", version] => Some(Self::GroupVersion {
                group: String::new(),
                version: (*version).to_owned(),
            }),
            ["apis", group, version] => Some(Self::GroupVersion {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
            }),
            ["api", version, rest @ ..] => Resource::parse("", version, rest).map(Self::Resource),
            ["apis", group, version, rest @ ..] => {
                Resource::parse(group, version, rest).map(Self::Resource)
            }
            _ => None,
        }
    }
}

impl Resource {
    fn parse(group: &str, version: &str, rest: &[&str]) -> Option<Self> {
        // A namespace's own subresources look like collections in it.
        let (namespace, rest) = match rest {
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            _ => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
            _ => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.map(str::to_owned),
            plural: plural.to_owned(),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
        })
    }
}

/// A decoded path segment. Empty ones, `.`, `..`, and ones that hide a slash
/// or a percent sign name nothing.
fn segment(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?.into_owned();
    let odd = matches!(text.as_str(), "" | "." | "..") || text.contains(['/', '%', '\0']);
    (!odd).then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn resource(path: &str) -> String {
        let Some(Route::Resource(r)) = Route::parse(path) else {
            return "-".into();
        };
        let part = |x: &Option<String>| x.clone().unwrap_or_else(|| "_".into());
        format!(
            "{}/{} ns={} {} {} {}",
            r.group,
            r.version,
            part(&r.namespace),
            r.plural,
            part(&r.name),
            part(&r.subresource)
        )
    }

    #[test]
    fn resources() {
        for (path, expected) in [
            ("/api/v1/pods", "/v1 ns=_ pods _ _"),
            ("/api/v1/nodes/n", "/v1 ns=_ nodes n _"),
            ("/api/v1/nodes/n/status", "/v1 ns=_ nodes n status"),
            ("/api/v1/namespaces", "/v1 ns=_ namespaces _ _"),
            ("/api/v1/namespaces/a", "/v1 ns=_ namespaces a _"),
            (
                "/api/v1/namespaces/a/finalize",
                "/v1 ns=_ namespaces a finalize",
            ),
            ("/api/v1/namespaces/a/pods/", "/v1 ns=a pods _ _"),
            (
                "/api/v1/namespaces/a/pods/p%2D1/log",
                "/v1 ns=a pods p-1 log",
            ),
            (
                "/apis/batch/v1/namespaces/a/jobs/j",
                "batch/v1 ns=a jobs j _",
            ),
            ("/apis/batch/v1/namespaces/a/jobs/j/status/x", "-"),
            ("/api/v1/namespaces/a/pods/..", "-"),
            ("/api/v1//pods", "-"),
            ("/api/v1/namespaces/a%2Fb/pods", "-"),
        ] {
            assert_eq!(resource(path), expected, "{path}");
        }
    }

    #[test]
    fn the_rest() {
        assert_eq!(Route::parse("/api"), Some(Route::CoreVersions));
        assert_eq!(Route::parse("/apis/"), Some(Route::Groups));
        assert_eq!(Route::parse("/livez/ping"), Some(Route::Health("livez")));
        assert_eq!(
            Route::parse("/openapi/v3/apis/batch/v1"),
            Some(Route::OpenApiV3("apis/batch/v1".into()))
        );
        assert_eq!(Route::parse("/nonsense"), None);
        assert_eq!(Route::parse("nonsense"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(/[a-z.%0-9]{0,6}){0,8}") {
            let _ = Route::parse(&text);
        }
    }
}
