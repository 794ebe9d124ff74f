//! The headers of proxied requests and responses.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::status_error::StatusError;

/// Headers that concern a single connection.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A header value.
pub(crate) fn value(text: &str) -> Result<HeaderValue, StatusError> {
    HeaderValue::from_str(text).map_err(StatusError::internal)
}

/// Removes the headers that concern a single connection, and those that
/// `Connection` names.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP {
        headers.remove(*name);
    }
    for name in named {
        headers.remove(name);
    }
}

/// Removes the credentials, which are for this server.
pub(crate) fn remove_credentials(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    let impersonation: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("impersonate-"))
        .cloned()
        .collect();
    for name in impersonation {
        headers.remove(name);
    }
}

/// Rewrites a redirect to the pod, so that it leads through the proxy.
pub(crate) fn rewrite_location(headers: &mut HeaderMap, authority: &str, prefix: &str) {
    let Some(location) = headers.get(header::LOCATION) else {
        return;
    };
    let Ok(location) = location.to_str() else {
        return;
    };
    let without_scheme = location
        .strip_prefix("http://")
        .or_else(|| location.strip_prefix("https://"));
    let path = match without_scheme {
        Some(rest) => rest.strip_prefix(authority),
        None => Some(location),
    };
    let path = path.filter(|path| path.starts_with('/') && !path.starts_with("//"));
    let rewritten = path.and_then(|path| HeaderValue::try_from(format!("{prefix}{path}")).ok());
    if let Some(rewritten) = rewritten {
        headers.insert(header::LOCATION, rewritten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        pairs.collect()
    }

    #[test]
    fn connection_headers_and_credentials_are_removed() {
        let mut headers = map(&[
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("te", "trailers"),
            ("authorization", "Bearer t"),
            ("impersonate-user", "u"),
            ("x-kept", "2"),
        ]);
        remove_hop_by_hop(&mut headers);
        remove_credentials(&mut headers);
        assert_eq!(headers, map(&[("x-kept", "2")]));
    }

    #[test]
    fn redirects_lead_through_the_proxy() {
        for (location, expected) in [
            ("/a?b", "/p/proxy/a?b"),
            ("http://127.1.2.3:80/a", "/p/proxy/a"),
            ("https://127.1.2.3:80/", "/p/proxy/"),
            ("http://elsewhere/a", "http://elsewhere/a"),
            ("http://127.1.2.3:8080/a", "http://127.1.2.3:8080/a"),
            ("//elsewhere/a", "//elsewhere/a"),
            ("relative", "relative"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::LOCATION, HeaderValue::from_static(location));
            rewrite_location(&mut headers, "127.1.2.3:80", "/p/proxy");
            assert_eq!(headers[header::LOCATION], expected, "{location}");
        }
    }
}
