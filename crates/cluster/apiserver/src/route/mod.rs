//! Parses paths into typed routes. Pure: the existence of kinds is checked later.

mod test_path;

use percent_encoding::percent_decode_str;

pub(crate) use test_path::TestPath;

use crate::usage::SUMMARY;

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`: lists the available paths.
    Root,
    /// `/healthz`, `/livez`, `/readyz`, and the individual checks below them.
    Health(&'static str, Option<String>),
    /// `/metrics`.
    Metrics,
    /// `/version`.
    Version,
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiV3Index,
    /// `/openapi/v3/{group version}`.
    OpenApiV3(String),
    /// `/.well-known/openid-configuration`: the issuer of tokens.
    OpenIdConfiguration,
    /// `/openid/v1/jwks`: the keys that verify tokens.
    OpenIdKeys,
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
    /// Paths below `/longshore.dev`.
    ForTests(TestPath),
}

/// The reason why a path has no route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadPath {
    /// No path of this API has this form.
    Unknown,
    /// The path has an invalid escape.
    Escape,
    /// An object cannot have this name.
    Name(String),
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
    /// The rest of the path of the subresource `proxy`, as it was sent.
    pub(crate) proxied: Option<String>,
    /// True if the path is a legacy watch path: `/api/v1/watch/…`.
    pub(crate) watch: bool,
}

impl Route {
    /// Parses a path.
    pub(crate) fn parse(path: &str) -> Result<Self, BadPath> {
        if let Some((of, rest)) = split_proxy(path) {
            let mut route = Self::parse(of)?;
            if let Self::Resource(resource) = &mut route {
                resource.proxied = Some(rest.to_owned());
            }
            return Ok(route);
        }
        let path = path.strip_prefix('/').ok_or(BadPath::Unknown)?;
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Ok(Self::Root);
        }
        // The path is longer than any valid path.
        if path.split('/').count() > 16 {
            return Err(BadPath::Unknown);
        }
        let parts = path
            .split('/')
            .map(segment)
            .collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let route = Self::of(&parts).ok_or(BadPath::Unknown)?;
        match parts.iter().find(|part| matches!(**part, "." | "..")) {
            None => Ok(route),
            Some(dots) => Err(match route {
                Self::Resource(resource)
                    if resource.name.as_deref() == Some(dots) && resource.subresource.is_none() =>
                {
                    BadPath::Name((*dots).to_owned())
                }
                _ => BadPath::Unknown,
            }),
        }
    }

    fn of(parts: &[&str]) -> Option<Self> {
        let check = |name, rest: &[&str]| match rest {
            [] => Some(Self::Health(name, None)),
            [check] => Some(Self::Health(name, Some((*check).to_owned()))),
            // For example `poststarthook/x`.
            _ => None,
        };
        match parts {
            ["healthz", rest @ ..] => check("healthz", rest),
            ["livez", rest @ ..] => check("livez", rest),
            ["readyz", rest @ ..] => check("readyz", rest),
            ["longshore.dev", rest @ ..] => TestPath::parse(rest).map(Self::ForTests),
            ["metrics"] => Some(Self::Metrics),
            ["version"] => Some(Self::Version),
            ["openapi", "v2"] => Some(Self::OpenApiV2),
            ["openapi", "v3"] => Some(Self::OpenApiV3Index),
            ["openapi", "v3", rest @ ..] => Some(Self::OpenApiV3(rest.join("/"))),
            [".well-known", "openid-configuration"] => Some(Self::OpenIdConfiguration),
            ["openid", "v1", "jwks"] => Some(Self::OpenIdKeys),
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
            ["api", "v1", "nodes", name, "proxy", "stats", "summary"] => {
                let mut resource = Resource::parse("", "v1", &["nodes", name])?;
                resource.subresource = Some(SUMMARY.to_owned());
                Some(Self::Resource(resource))
            }
            ["api", version, rest @ ..] => Resource::parse("", version, rest).map(Self::Resource),
            ["apis", group, version, rest @ ..] => {
                Resource::parse(group, version, rest).map(Self::Resource)
            }
            _ => None,
        }
    }
}

impl Resource {
    /// Returns true if the path is `bindings`, the legacy collection for binding pods.
    pub(crate) fn is_bindings(&self) -> bool {
        let core = self.group.is_empty() && self.version == "v1";
        let whole = self.name.is_none() && self.namespace.is_some() && !self.watch;
        core && self.plural == "bindings" && whole
    }

    fn parse(group: &str, version: &str, rest: &[&str]) -> Option<Self> {
        if let ["watch", watched @ ..] = rest {
            let resource = Self::parse(group, version, watched)?;
            let watch = !resource.watch && resource.subresource.is_none();
            return watch.then_some(Self { watch, ..resource });
        }
        // The subresources of a namespace look like collections in it.
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
            proxied: None,
            watch: false,
        })
    }
}

/// Splits the path of a subresource `proxy` after this word. The rest belongs to the pod or
/// Service, and is not parsed.
fn split_proxy(path: &str) -> Option<(&str, &str)> {
    let inside = path.strip_prefix("/api/v1/namespaces/")?;
    let mut parts = inside.splitn(5, '/');
    let (_, kind, _) = (parts.next()?, parts.next()?, parts.next()?);
    let is_proxy = matches!(kind, "pods" | "services") && parts.next()? == "proxy";
    let rest = parts.next().filter(|_| is_proxy)?;
    let end = path.len() - rest.len() - 1;
    Some((&path[..end], &path[end..]))
}

/// Decodes a path segment. Empty segments and segments with an escaped slash,
/// percent sign or zero byte are invalid.
fn segment(text: &str) -> Result<String, BadPath> {
    if !has_sound_escapes(text) {
        return Err(BadPath::Escape);
    }
    let text = percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| BadPath::Unknown)?.into_owned();
    if text.is_empty() || text.contains(['/', '%', '\0']) {
        return Err(BadPath::Unknown);
    }
    Ok(text)
}

/// Returns true if every percent sign starts a valid escape.
pub(crate) fn has_sound_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let digits = after.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn resource(path: &str) -> String {
        let Ok(Route::Resource(r)) = Route::parse(path) else {
            return "-".into();
        };
        let part = |x: &Option<String>| x.clone().unwrap_or_else(|| "_".into());
        format!(
            "{}{}/{} ns={} {} {} {}",
            if r.watch { "watch " } else { "" },
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
            (
                "/api/v1/nodes/n/proxy/stats/summary",
                "/v1 ns=_ nodes n proxy/stats/summary",
            ),
            ("/api/v1/nodes/n/proxy/stats", "-"),
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
            ("/api/v1/watch/pods", "watch /v1 ns=_ pods _ _"),
            (
                "/apis/batch/v1/watch/namespaces/a/jobs/j",
                "watch batch/v1 ns=a jobs j _",
            ),
            (
                "/api/v1/watch/namespaces/a",
                "watch /v1 ns=_ namespaces a _",
            ),
            ("/api/v1/watch", "-"),
            ("/api/v1/watch/watch/pods", "-"),
            ("/api/v1/watch/namespaces/a/pods/p/log", "-"),
            ("/api/v1//pods", "-"),
            ("/api/v1/namespaces/a%2Fb/pods", "-"),
        ] {
            assert_eq!(resource(path), expected, "{path}");
        }
    }

    #[test]
    fn the_rest_of_a_proxied_path_is_kept() {
        let proxied = |path: &str| {
            let Ok(Route::Resource(resource)) = Route::parse(path) else {
                return None;
            };
            Some((resource.name?, resource.subresource?, resource.proxied))
        };
        let pod = "/api/v1/namespaces/a/pods/http:p:80/proxy";
        let found = |rest: Option<&str>| {
            let rest = rest.map(str::to_owned);
            Some(("http:p:80".to_owned(), "proxy".to_owned(), rest))
        };
        assert_eq!(proxied(pod), found(None));
        for rest in ["/", "//x/../%2F/", "/a/b?c"] {
            assert_eq!(proxied(&format!("{pod}{rest}")), found(Some(rest)));
        }
        let other = Route::parse("/api/v1/namespaces/a/configmaps/c/proxy/x");
        assert_eq!(other, Err(BadPath::Unknown));
    }

    #[test]
    fn non_resource_paths() {
        assert_eq!(Route::parse("/api"), Ok(Route::CoreVersions));
        assert_eq!(Route::parse("/apis/"), Ok(Route::Groups));
        assert_eq!(
            Route::parse("/livez/ping"),
            Ok(Route::Health("livez", Some("ping".into())))
        );
        assert_eq!(
            Route::parse("/openapi/v3/apis/batch/v1"),
            Ok(Route::OpenApiV3("apis/batch/v1".into()))
        );
        assert_eq!(
            Route::parse("/.well-known/openid-configuration"),
            Ok(Route::OpenIdConfiguration)
        );
        assert_eq!(Route::parse("/openid/v1/jwks"), Ok(Route::OpenIdKeys));
        assert_eq!(
            Route::parse("/longshore.dev/v1/expire"),
            Ok(Route::ForTests(TestPath::Expire))
        );
        for (path, problem) in [
            ("/nonsense", BadPath::Unknown),
            ("nonsense", BadPath::Unknown),
            ("/api/../x", BadPath::Unknown),
            ("/api/v1/nodes/%zz", BadPath::Escape),
            ("/api/v1/nodes/%", BadPath::Escape),
            ("/api/v1/nodes/%2e%2E", BadPath::Name("..".into())),
        ] {
            assert_eq!(Route::parse(path), Err(problem), "{path}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "(/[a-z.%0-9]{0,6}){0,8}") {
            let _ = Route::parse(&text);
        }
    }
}
