//! Requests as plain values: method, path, query and body.

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request,
    header::{ACCEPT, CONTENT_TYPE},
};
use kube_client::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use super::body::MAX_BODY_BYTES;
use crate::error::{Error, Result};

/// The characters that are percent-encoded in a path segment or a query value: all but
/// the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Percent-encodes a path segment, or a name or value of a query.
pub(crate) fn escape(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// A request as a plain value.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The absolute path, percent-encoded.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) content_type: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Bytes,
    /// True if the request is sent only once, even if the server is busy or the connection is lost.
    pub(crate) once: bool,
    /// The maximum size of the response in bytes.
    pub(crate) max_bytes: usize,
}

pub(crate) const JSON: &str = "application/json";

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            content_type: JSON,
            accept: JSON,
            body: Bytes::new(),
            once: false,
            max_bytes: MAX_BODY_BYTES,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn queries(mut self, query: impl IntoIterator<Item = (String, String)>) -> Self {
        self.query.extend(query);
        self
    }

    pub(crate) fn json(mut self, data: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_vec(data).map_err(|error| {
            Error::Invalid(format!("the data cannot be serialized as JSON: {error}"))
        })?;
        self.body = text.into();
        Ok(self)
    }

    /// The request's name in errors. It omits the query, which may be long.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The response's name in errors.
    pub(crate) fn response_name(&self) -> String {
        format!("the response to {}", self.name())
    }

    fn target(&self) -> String {
        let mut target = self.path.clone();
        for (i, (name, value)) in self.query.iter().enumerate() {
            target.push(if i == 0 && !self.path.contains('?') {
                '?'
            } else {
                '&'
            });
            target.push_str(&escape(name));
            target.push('=');
            target.push_str(&escape(value));
        }
        target
    }

    pub(super) fn uri(&self) -> Result<http::Uri> {
        self.target()
            .parse()
            .map_err(|error| Error::Invalid(format!("invalid request path {}: {error}", self.path)))
    }

    pub(super) fn request(&self) -> Result<Request<Body>> {
        let mut request = Request::new(Body::from(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri()?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(self.accept));
        if !self.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped() {
        let call = Call::get("/api/v1/pods")
            .with("labelSelector", "a in (b,c)")
            .with("x", "1&2");
        assert_eq!(
            call.target(),
            "/api/v1/pods?labelSelector=a%20in%20%28b%2Cc%29&x=1%262"
        );
    }
}
