//! Classifies requests by path and query: may the request contain secrets, and is the response a
//! stream? Pure.

use percent_encoding::percent_decode_str;

/// The secrets that a request or its response may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sensitivity {
    /// No secrets by the path; an object in the response may still be a Secret.
    None,
    /// Secrets.
    Secret,
    /// Tokens of service accounts.
    Token,
}

/// The form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    /// Events, one per line.
    Watch,
    /// Lines of a log, as they are written.
    Log,
}

/// The resource and the subresource of a path; empty if it has none.
fn resource(path: &str) -> (&str, &str) {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let version = match parts.next() {
        Some("api") => parts.next(),
        Some("apis") => parts.nth(1),
        _ => None,
    };
    let mut parts = parts.peekable();
    if version.is_none() {
        return ("", "");
    }
    if parts.peek() == Some(&"watch") {
        parts.next();
    }
    let rest: Vec<&str> = parts.take(5).collect();
    let object = match rest.as_slice() {
        ["namespaces", _, resource, ..] if !matches!(*resource, "status" | "finalize") => {
            rest.get(2..)
        }
        _ => rest.get(..),
    };
    let part = |index| {
        let part = object.and_then(|object| object.get(index));
        part.copied().unwrap_or_default()
    };
    (part(0), part(2))
}

/// Returns true if a request of this path contains secrets.
pub(crate) fn sensitivity(path: &str) -> Sensitivity {
    let path = percent_decode_str(path).decode_utf8_lossy();
    match resource(&path) {
        ("secrets", _) => Sensitivity::Secret,
        ("serviceaccounts", "token") | ("tokenreviews", _) => Sensitivity::Token,
        _ => Sensitivity::None,
    }
}

/// Returns true if two requests with different bodies are the same: Events and Leases contain times
/// and random names.
pub(crate) fn has_volatile_body(path: &str) -> bool {
    matches!(resource(path).0, "events" | "leases")
}

/// The form of the response to a request.
pub(crate) fn form(method: &str, path: &str, query: &[(String, String)]) -> Form {
    let is_set = |name: &str| {
        query
            .iter()
            .any(|(key, value)| key == name && matches!(value.as_str(), "1" | "true" | "True"))
    };
    if method != "GET" {
        return Form::Whole;
    }
    let is_api = path.starts_with("/api/") || path.starts_with("/apis/");
    let (resource, subresource) = resource(path);
    let is_watch_path = is_api && path.split('/').take(5).any(|part| part == "watch");
    match (resource, subresource) {
        ("pods", "log") if is_set("follow") => Form::Log,
        (_, "proxy" | "log") => Form::Whole,
        _ if is_api && (is_set("watch") || is_watch_path) => Form::Watch,
        _ => Form::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_secrets_are_known_by_their_path() {
        for (path, expected) in [
            ("/api/v1/secrets", Sensitivity::Secret),
            ("/api/v1/namespaces/a/secrets/b", Sensitivity::Secret),
            ("/api/v1/watch/namespaces/a/secrets", Sensitivity::Secret),
            ("/api/v1/namespaces/a/%73ecrets/b", Sensitivity::Secret),
            (
                "/apis/example.com/v1/namespaces/a/secrets",
                Sensitivity::Secret,
            ),
            (
                "/api/v1/namespaces/a/serviceaccounts/b/token",
                Sensitivity::Token,
            ),
            (
                "/apis/authentication.k8s.io/v1/tokenreviews",
                Sensitivity::Token,
            ),
            ("/api/v1/namespaces/secrets", Sensitivity::None),
            (
                "/api/v1/namespaces/secrets/configmaps/secrets",
                Sensitivity::None,
            ),
            ("/api/v1/namespaces/a/serviceaccounts/b", Sensitivity::None),
            (
                "/api/v1/namespaces/a/pods/b/proxy/secrets",
                Sensitivity::None,
            ),
            ("/version", Sensitivity::None),
        ] {
            assert_eq!(sensitivity(path), expected, "{path}");
        }
    }

    #[test]
    fn watches_and_followed_logs_are_streams() {
        let query = |name: &str| vec![(name.to_owned(), "true".to_owned())];
        let pods = "/api/v1/namespaces/a/pods";
        assert_eq!(form("GET", pods, &query("watch")), Form::Watch);
        assert_eq!(form("GET", "/api/v1/watch/pods", &[]), Form::Watch);
        assert_eq!(form("GET", pods, &[]), Form::Whole);
        assert_eq!(form("DELETE", pods, &query("watch")), Form::Whole);
        let log = format!("{pods}/b/log");
        assert_eq!(form("GET", &log, &query("follow")), Form::Log);
        assert_eq!(form("GET", &log, &[]), Form::Whole);
        let proxied = format!("{pods}/b/proxy/x");
        assert_eq!(form("GET", &proxied, &query("watch")), Form::Whole);
    }
}
