//! A request as it is recorded and compared. Pure.

use std::collections::BTreeMap;

use http::{HeaderMap, Method, header};
use percent_encoding::percent_decode_str;

use crate::{
    accept,
    content::Content,
    resource::{self, Form, Sensitivity},
    secrets::{MARKER, redact_text},
};

/// Query parameters whose value is a secret.
const SECRET_PARAMETERS: &[&str] = &["token", "access_token", "password"];
/// The query parameter of watches that clients choose at random.
const TIMEOUT: &str = "timeoutSeconds";

/// A request without secrets.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The decoded names and values of the query, in their order.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Option<Content>,
}

/// The key of a request. Requests with the same key and the same body get the same response.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    method: Method,
    path: String,
    /// Sorted, without the timeout.
    query: Vec<(String, String)>,
    representation: String,
    /// The type of a patch.
    patch: String,
}

/// Decodes the query of a URL.
pub(crate) fn parse_query(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

impl Request {
    /// The recorded part of a request: without secrets.
    pub(crate) fn new(
        (method, path, query): (&Method, &str, &[(String, String)]),
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        let text = |name: header::HeaderName| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let (accept, media_type) = (text(header::ACCEPT), text(header::CONTENT_TYPE));
        let sensitivity = resource::sensitivity(path);
        let body = match text(header::CONTENT_ENCODING).as_str() {
            "" | "identity" => Content::of(body, &media_type, sensitivity),
            encoding => Some(Content::Omitted(format!("it is encoded as {encoding}"))),
        };
        let mut recorded = BTreeMap::new();
        for (name, value) in [("accept", accept), ("content-type", media_type)] {
            if !value.is_empty() {
                recorded.insert(name.to_owned(), value);
            }
        }
        let without_secret = |(name, value): &(String, String)| {
            let value = match SECRET_PARAMETERS.contains(&name.as_str()) {
                true => MARKER.to_owned(),
                false => redact_text(value).unwrap_or_else(|| value.clone()),
            };
            (name.clone(), value)
        };
        Self {
            method: method.clone(),
            path: redact_text(path).unwrap_or_else(|| path.to_owned()),
            query: query.iter().map(without_secret).collect(),
            headers: recorded,
            body,
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The value of a query parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn form(&self) -> Form {
        resource::form(self.method.as_str(), &self.path, &self.query)
    }

    pub(crate) fn sensitivity(&self) -> Sensitivity {
        resource::sensitivity(&self.path)
    }

    /// The parameters that are compared, sorted.
    pub(crate) fn compared_query(&self) -> Vec<(String, String)> {
        let is_stream = self.form() != Form::Whole;
        let compared = self.query.iter();
        let compared = compared.filter(|(name, _)| !(is_stream && name == TIMEOUT));
        let mut query: Vec<_> = compared.cloned().collect();
        query.sort_unstable();
        query
    }

    pub(crate) fn key(&self) -> Key {
        let patch = match self.method {
            Method::PATCH => {
                let media_type = self.header("content-type");
                let media_type = media_type.split(';').next().unwrap_or_default();
                media_type.trim().to_ascii_lowercase()
            }
            _ => String::new(),
        };
        Key {
            method: self.method.clone(),
            path: self.path.clone(),
            query: self.compared_query(),
            representation: accept::representation(&accept::without_binary(self.header("accept"))),
            patch,
        }
    }

    /// The key of a watch without the version at which it starts; `None` for other requests.
    pub(crate) fn watch_key(&self) -> Option<Key> {
        if self.form() != Form::Watch {
            return None;
        }
        let mut key = self.key();
        key.query.retain(|(name, _)| {
            !matches!(
                name.as_str(),
                "resourceVersion" | "resourceVersionMatch" | "sendInitialEvents"
            )
        });
        Some(key)
    }

    /// Returns true if another request has the same body.
    pub(crate) fn has_body_of(&self, recorded: &Self) -> bool {
        match (&self.body, &recorded.body) {
            // A body that was not recorded cannot be compared.
            (_, Some(Content::Omitted(_))) => true,
            (None, None) => true,
            (Some(Content::Text(own)), Some(Content::Text(other))) => own == other,
            (Some(Content::Bytes(own)), Some(Content::Bytes(other))) => own == other,
            (Some(own @ Content::Json(_)), Some(other @ Content::Json(_))) => {
                own.value().is_some_and(|own| Some(own) == other.value())
            }
            _ => false,
        }
    }

    /// The method, the path and the query.
    pub(crate) fn name(&self) -> String {
        let mut name = format!("{} {}", self.method, self.path);
        for (index, (key, value)) in self.query.iter().enumerate() {
            name.push(if index == 0 { '?' } else { '&' });
            name.push_str(key);
            name.push('=');
            name.push_str(value);
        }
        name
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A request of a method and a target, with a body in JSON.
    pub(crate) fn request(method: &str, target: &str, accept: &str, body: &str) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        let method = method.parse().unwrap();
        Request::new(
            (&method, path, &parse_query(query)),
            &headers,
            body.as_bytes(),
        )
    }

    #[test]
    fn the_order_of_the_query_and_the_timeout_of_a_watch_do_not_matter() {
        let key = |target: &str| request("GET", target, "application/json", "").key();
        assert_eq!(key("/api/v1/pods?a=1&b=2"), key("/api/v1/pods?b=2&a=1"));
        assert_ne!(key("/api/v1/pods?a=1"), key("/api/v1/pods?a=2"));
        let watch = "/api/v1/pods?watch=true";
        assert_eq!(key(watch), key(&format!("{watch}&timeoutSeconds=300")));
        assert_ne!(
            key("/api/v1/pods?timeoutSeconds=1"),
            key("/api/v1/pods?timeoutSeconds=2")
        );
    }

    #[test]
    fn bodies_are_compared_as_values() {
        let with = |body: &str| request("POST", "/api/v1/nodes", "", body);
        assert!(with(r#"{"a":1,"b":[2]}"#).has_body_of(&with(r#"{ "b": [2], "a": 1 }"#)));
        assert!(!with(r#"{"a":1}"#).has_body_of(&with(r#"{"a":2}"#)));
        assert!(!with("").has_body_of(&with("{}")));
    }

    #[test]
    fn secrets_in_the_url_are_not_recorded() {
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2ln";
        let target = format!("/x/{token}?token=abc&x={token}&y=a%20b");
        let request = request("GET", &target, "", "");
        let expected = "GET /x/REDACTED?token=REDACTED&x=REDACTED&y=a b";
        assert_eq!(request.name(), expected);
    }
}
