//! The headers of proxied requests and responses.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use longshore_model::hop_by_hop;

use crate::status_error::StatusError;

/// A header value.
pub(crate) fn value(text: &str) -> Result<HeaderValue, StatusError> {
    HeaderValue::from_str(text).map_err(StatusError::internal)
}

/// Removes the headers that concern a single connection, and the headers that `Connection` names.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let connection = headers.get_all(header::CONNECTION).iter();
    for name in hop_by_hop::names(connection.filter_map(|value| value.to_str().ok())) {
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
}
